//! Parses the URLs of stores and records, and removes passwords from them for display.
//!
//! A password must not be shown, even if it is at a wrong position in the URL.

/// Whether a URL names a PostgreSQL database.
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// A URL for logs and errors: without the password, which is between the user and the last `@`, and
/// without the query, which may contain one.
///
/// ```
/// let shown = catraca::url::redact("redis://user:secret@cache.example:6379/0");
/// assert_eq!(shown, "redis://user:…@cache.example:6379/0");
/// ```
pub fn redact(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // Even an invalid URL may contain a password before its last `@`.
        return url.rsplit_once('@').map_or(url.to_owned(), |(_, host)| format!("…@{host}"));
    };
    let host_start = rest.rfind('@').map_or(0, |at| at + 1);
    let end = rest[host_start..].find('?').map_or(rest.len(), |query| host_start + query);
    let user = rest[..host_start].split(':').next().unwrap_or_default().trim_end_matches('@');
    let hidden = if rest[..host_start].contains(':') { ":…" } else { "" };
    let at = if host_start > 0 { "@" } else { "" };
    let query = if end < rest.len() { "?…" } else { "" };
    format!("{scheme}://{user}{hidden}{at}{}{query}", &rest[host_start..end])
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
        shown.iter().for_each(|(url, shown)| assert_eq!(&redact(url), shown));
    }
}
