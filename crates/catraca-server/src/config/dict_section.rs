//! `[dict]`: how the balances of the DICT are asked for and taken over.

use std::time::Duration;

use catraca::core::located::{DefaultValue, Node, Report, ValueSchema, scalar};
use catraca::core::time::Span;
use hyper::http::Uri;

use super::section::section;
use super::setting_kind::{FileName, Optional, SettingContext, SettingKind};

/// The shortest interval: the DICT accepts six such calls a minute.
const POLL_MIN: Span = Span::from_millis(10_000);
const POLL_MAX: Span = Span::from_millis(86_400_000);
/// The gate that each poll passes, as the DICT calls the operation.
pub const DICT_POLL_GATE: &str = "listBucketStates";
/// The word for no polling.
const OFF: &str = "off";
/// The word for no participant, for a catalog that reads it from a variable.
const UNSET: &str = "unset";

section! {
    /// The fields of `[dict]`.
    "dict" => DictSection {
        /// how often the states of a participant's buckets are read from `upstream` and
        /// [taken over](dict.md#the-worker-list-and-reconcile), or `"off"`
        poll: PollInterval = DefaultValue::Text("off"), Restart;
        /// the server that answers as the DICT does, such as the program that signs requests
        upstream: Optional<UpstreamUrl> = DefaultValue::Absent("required with `poll`"), Restart;
        /// the ISPB of the participant, for the header `PI-RequestingParticipant`; `"unset"` is
        /// the same as none
        participant: Ispb = DefaultValue::Absent("required with `poll`"), Restart;
        /// the path of `listBucketStates`
        path: UrlPath = DefaultValue::Text("/api/v2/policies/"), Restart;
        /// a file with the certificates that sign that of an `https` upstream, in PEM
        ca_file: Optional<FileName> = DefaultValue::Absent("those of the system"), Restart;
    }
}

/// A duration, or `off`.
pub struct PollInterval;

impl SettingKind for PollInterval {
    type Value = Option<Duration>;
    const SCHEMA: ValueSchema = ValueSchema::AnyOf(&[
        ValueSchema::Duration { least: POLL_MIN, most: POLL_MAX },
        ValueSchema::Pattern { pattern: "^off$", words: "`\"off\"`" },
    ]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Self::Value> {
        if node.text(report, "a duration such as \"5m\", or \"off\"")? == OFF {
            return Some(None);
        }
        let span = scalar::duration_or_forever(report, node)?;
        if !(POLL_MIN..=POLL_MAX).contains(&span) {
            let message = format!("`{span}` is out of range");
            let fix = format!("write a duration from \"{POLL_MIN}\" to \"{POLL_MAX}\"");
            report.error("bad-duration", node.location, message, fix);
            return None;
        }
        u64::try_from(span.micros()).ok().map(|micros| Some(Duration::from_micros(micros)))
    }
}

/// The URL of a server, without a path.
pub struct UpstreamUrl;

impl SettingKind for UpstreamUrl {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Url(&["http", "https"]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let text = node.text(report, "a text in quotes")?;
        let url: Option<Uri> = text.parse().ok();
        let is_server = url.is_some_and(|url| {
            let has_scheme = matches!(url.scheme_str(), Some("http" | "https"));
            has_scheme && url.host().is_some() && matches!(url.path(), "" | "/")
        });
        if !is_server {
            let message = "this is not the URL of a server";
            let fix = "write http:// or https://, a host and a port, without a path";
            report.private_error("bad-url", node.location, message, fix);
        }
        is_server.then(|| text.trim_end_matches('/').to_owned())
    }
}

/// The path of a URL.
pub struct UrlPath;

impl SettingKind for UrlPath {
    type Value = String;
    const SCHEMA: ValueSchema =
        ValueSchema::Pattern { pattern: "^/", words: "a path that begins with `/`" };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let text = node.text(report, "a text in quotes")?;
        let is_path = text.starts_with('/') && text.parse::<Uri>().is_ok();
        if !is_path {
            let message = format!("`{}` is not a path", text.escape_debug());
            let fix = "write a path such as \"/api/v2/policies/\"";
            report.error("bad-url", node.location, message, fix);
        }
        is_path.then(|| text.to_owned())
    }
}

/// An ISPB, the number of a participant, or `unset`.
pub struct Ispb;

impl SettingKind for Ispb {
    type Value = Option<String>;
    const SCHEMA: ValueSchema = ValueSchema::AnyOf(&[
        ValueSchema::Pattern { pattern: "^[0-9A-Za-z]{8}$", words: "eight letters or digits" },
        ValueSchema::Pattern { pattern: "^unset$", words: "`\"unset\"`" },
    ]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Self::Value> {
        let text = node.text(report, "the ISPB of a participant in quotes")?;
        if text == UNSET {
            return Some(None);
        }
        let is_ispb = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_ispb {
            let message = format!("`{}` is not an ISPB", text.escape_debug());
            let fix = "write the eight letters or digits of the participant, or \"unset\"";
            report.error("bad-name", node.location, message, fix);
        }
        is_ispb.then(|| Some(text.to_owned()))
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::parse;

    #[test]
    fn an_interval_needs_a_server_a_participant_and_a_gate() {
        let gate = "[policy.p]\nby = ['participant']\nwindow = '6 per 1m'\n\
                    [gate.listBucketStates]\npolicies = ['p']\n";
        let dict = |text: &str| parse(&format!("{gate}[dict]\n{text}")).map(|r| r.process.dict);
        assert_eq!(dict("poll = 'off'").unwrap().poll, None);
        assert_eq!(dict("participant = 'unset'").unwrap().participant, None);
        assert_eq!(dict("").unwrap().participant, None);
        let all = "poll = '5m'\nupstream = 'http://127.0.0.1:1/'\nparticipant = '12345678'\n";
        let read = dict(all).unwrap();
        assert_eq!(read.poll, Some(Duration::from_secs(300)));
        assert_eq!(read.upstream.as_deref(), Some("http://127.0.0.1:1"));
        for wrong in [
            "poll = '5m'",
            "poll = '1s'",
            "poll = 'never'",
            "upstream = 'ftp://a'",
            "upstream = 'http://a/b'",
            "path = 'api/v2/policies'",
            "path = '/a b'",
            &all.replace("participant", "#"),
            &all.replace("12345678", "unset"),
        ] {
            assert!(dict(wrong).is_err(), "{wrong}");
        }
        assert!(parse(&format!("[dict]\n{all}")).is_err(), "no gate");
        assert!(parse(&gate.replace("[gate.listBucketStates]", "[gate.other]")).is_ok());
    }

    #[test]
    fn a_participant_is_an_ispb_also_without_a_poll() {
        let read = |participant: &str| parse(&format!("[dict]\nparticipant = {participant}\n"));
        for ispb in ["12345678", "1A2B3C4D"] {
            let dict = read(&format!("'{ispb}'")).unwrap().process.dict;
            assert_eq!(dict.participant.as_deref(), Some(ispb));
        }
        for wrong in ["''", "'1234567'", "'123456789'", "'1234567-'", "'ispb.txt'", "'Unset'"] {
            let diagnostics = read(wrong).unwrap_err();
            let error = diagnostics.errors().next().unwrap();
            assert_eq!(error.code, "bad-name", "{wrong}");
            assert!(error.message.ends_with("is not an ISPB"), "{}", error.message);
        }
        assert!(read("12345678").is_err(), "a number would lose leading zeros");
    }
}
