//! URLs of the store and of the records. Errors never show a URL, which may contain a password.

use catraca::core::located::{Node, Report, ValueSchema};
use catraca::records::is_postgres;
use catraca::store::StoreKind;

use super::setting_kind::{SettingContext, SettingKind};

/// Where counters are.
pub struct StoreUrl;

impl SettingKind for StoreUrl {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Url(&StoreKind::SCHEMES);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let url = url(report, node, &StoreKind::SCHEMES)?;
        if let Err(error) = StoreKind::from_url(url) {
            // The message of the error is the URL and a fix.
            let text = error.to_string();
            let fix = text.split_once("\": ").map_or(&*text, |(_, fix)| fix);
            report.private_error("bad-url", node.location, "no store has this URL", fix);
            return None;
        }
        Some(url.to_owned())
    }
}

/// Where records are.
pub struct RecordsUrl;

impl SettingKind for RecordsUrl {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Url(&RECORDS_SCHEMES);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let url = url(report, node, &RECORDS_SCHEMES)?;
        let is_file = url.strip_prefix("sqlite:").is_some_and(|file| !file.is_empty());
        if url != "none" && !is_file && !is_postgres(url) {
            let fix = "write \"sqlite:catraca.db\", \"postgres://USER@HOST/DATABASE\", or \"none\" \
                       to keep nothing";
            report.private_error("bad-url", node.location, "no records have this URL", fix);
            return None;
        }
        Some(url.to_owned())
    }
}

const RECORDS_SCHEMES: [&str; 4] = ["none", "sqlite", "postgres", "postgresql"];

/// A URL with one of these schemes, or a scheme alone, such as `memory:`.
fn url<'t>(report: &mut Report, node: Node<'t>, schemes: &[&str]) -> Option<&'t str> {
    let text = node.text(report, "an address in quotes")?;
    let scheme = text.split_once(':').map_or(text, |(scheme, _)| scheme);
    let scheme = scheme.split_once('+').map_or(scheme, |(scheme, _)| scheme);
    if !schemes.contains(&scheme) {
        let fix = format!("begin it with one of: {}", schemes.join(", "));
        report.private_error("bad-url", node.location, "unsupported URL scheme", fix);
        return None;
    }
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    if authority.matches('@').count() > 1 {
        let fix = "percent-encode the password: write an `@` as %40, and a `/` as %2F";
        report.private_error("bad-url", node.location, "more than one `@` before the host", fix);
        return None;
    }
    Some(text)
}
