//! What the URL of a store or of records says before anything is opened.
//!
//! Must not show a password, not even one that was written in the wrong place.

/// Whether a URL names a PostgreSQL database.
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// A URL as it may be shown: without what stands between the user and the last `@`, which may be a
/// password, and without its query, which may hold one.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // What is no URL may still hold a password, before the last `@`.
        return url.rsplit_once('@').map_or(url.to_owned(), |(_, place)| format!("…@{place}"));
    };
    let place = rest.rfind('@').map_or(0, |at| at + 1);
    let end = rest[place..].find('?').map_or(rest.len(), |query| place + query);
    let user = rest[..place].split(':').next().unwrap_or_default().trim_end_matches('@');
    let hidden = if rest[..place].contains(':') { ":…" } else { "" };
    let at = if place > 0 { "@" } else { "" };
    let query = if end < rest.len() { "?…" } else { "" };
    format!("{scheme}://{user}{hidden}{at}{}{query}", &rest[place..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let shown = [
            ("postgres://ana:s3cret@db/shop", "postgres://ana:…@db/shop"),
            ("mysql://ana:s3@cr?et@db/shop", "mysql://ana:…@db/shop"),
            ("postgres://db/shop?password=s3cret", "postgres://db/shop?…"),
            ("postgres://ana@db/shop", "postgres://ana@db/shop"),
            ("sqlite:catraca.db", "sqlite:catraca.db"),
            ("redis;//ana:s3@cret@h:1", "…@h:1"),
        ];
        shown.iter().for_each(|(url, shown)| assert_eq!(&redacted(url), shown));
    }
}
