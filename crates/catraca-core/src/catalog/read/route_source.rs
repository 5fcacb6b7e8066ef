//! The parts of a request that a route reads: `header:NAME`, `body:path.to.field` and so on.

use super::bounds::SEGMENTS_MAX;
use crate::catalog::{AttributeSource, CertificateField};
use crate::json_path::JsonPath;
use crate::located::{Node, Report, ValueSchema};

/// A part of a request.
pub(super) const SOURCE: ValueSchema = ValueSchema::Pattern {
    pattern: "^(header|cookie|query|path|body|jwt|certificate|const):",
    words: "a part of the request",
};

/// What an error says instead of something that is no part of a request.
pub(super) const WANTED: &str = "\"header:NAME\", \"cookie:NAME\", \"query:NAME\", \"path:2\", \
                      \"body:path.to.field\", \"jwt:CLAIM\", \"certificate:subject\" (or \
                      `fingerprint`, `san`) or \"const:TEXT\"";

/// Reads a part of a request.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<AttributeSource> {
    let text = node.text(report, WANTED)?;
    read_text(report, node, text)
}

/// The most parts of a request for one attribute.
const ALTERNATIVES_MAX: usize = 8;

/// Reads the parts of a request that an attribute is read from; of several, the first that a
/// request has counts: `header:x-tenant|query:tenant`.
pub(super) fn read_alternatives(
    report: &mut Report,
    node: Node<'_>,
) -> Option<Vec<AttributeSource>> {
    let text = node.text(report, WANTED)?;
    let texts = split_alternatives(text);
    if texts.len() > ALTERNATIVES_MAX {
        let message = format!("{} parts of the request are named", texts.len());
        report.error("bad-pick", node.location, message, format!("name 1 to {ALTERNATIVES_MAX}"));
        return None;
    }
    let found: Vec<_> = texts.into_iter().map(|text| read_part(report, node, text)).collect();
    found.into_iter().collect()
}

/// Reads one alternative. A `|` that is left in it was written to separate alternatives, except in
/// a constant.
fn read_part(report: &mut Report, node: Node<'_>, text: &str) -> Option<AttributeSource> {
    let found = read_text(report, node, text)?;
    if text.contains('|') && !matches!(found, AttributeSource::Literal(_)) {
        let message = format!("`{}` is not a part of a request", text.escape_debug());
        let fix = "write \"header:a|header:b\": each alternative names its kind";
        report.error("bad-pick", node.location, message, fix);
        return None;
    }
    Some(found)
}

/// Splits at each `|` that another part follows. Any other `|` stays in its part, such as
/// `const:a|b`.
fn split_alternatives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find('|').map(|at| from + at) {
        let next = rest[at + 1..].trim_start();
        if KINDS.iter().any(|kind| next.strip_prefix(kind).is_some_and(|n| n.starts_with(':'))) {
            parts.push(rest[..at].trim_end());
            rest = next;
            from = 0;
        } else {
            from = at + 1;
        }
    }
    parts.push(rest);
    parts
}

/// The words before the colon.
const KINDS: [&str; 8] =
    ["header", "cookie", "query", "path", "body", "jwt", "certificate", "const"];

/// Reads a part of a request from the text of a node, or from a part of that text.
pub(super) fn read_text(
    report: &mut Report,
    node: Node<'_>,
    text: &str,
) -> Option<AttributeSource> {
    let found = parse(text);
    if found.is_none() {
        let message = format!("`{}` is not a part of a request", text.escape_debug());
        report.error("bad-pick", node.location, message, format!("write {WANTED}"));
    }
    found
}

fn parse(text: &str) -> Option<AttributeSource> {
    let (from, name) = text.split_once(':')?;
    match from {
        _ if name.is_empty() => None,
        "header" => is_token(name).then(|| AttributeSource::Header(name.to_ascii_lowercase())),
        "cookie" => is_token(name).then(|| AttributeSource::Cookie(name.to_owned())),
        "query" => Some(AttributeSource::Query(name.to_owned())),
        "path" => {
            let segment = name.parse().ok().filter(|segment| (1..=SEGMENTS_MAX).contains(segment));
            segment.map(AttributeSource::Segment)
        }
        "body" => JsonPath::parse(name).map(AttributeSource::Body),
        "jwt" => is_claim(name).then(|| AttributeSource::Claim(name.to_owned())),
        "certificate" => {
            let mut fields = CertificateField::WORDS.into_iter();
            fields.find(|(word, _)| *word == name).map(|(_, own)| AttributeSource::Certificate(own))
        }
        "const" => Some(AttributeSource::Literal(name.to_owned())),
        _ => None,
    }
}

/// Whether a text can be the name of a claim; some are URLs.
fn is_claim(name: &str) -> bool {
    name.len() <= CLAIM_BYTES_MAX && !name.contains(char::is_control)
}

/// The longest name of a claim, in bytes.
const CLAIM_BYTES_MAX: usize = 256;

/// Whether a text can be the name of a header or of a cookie.
fn is_token(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_source_is_written_as_it_is_read() {
        for text in [
            "header:x-tenant-id",
            "cookie:Session",
            "query:a b",
            "path:32",
            "body:usage.total_tokens",
            "jwt:https://example.org/tenant",
            "certificate:subject",
            "certificate:fingerprint",
            "certificate:san",
            "const:x:y",
        ] {
            assert_eq!(parse(text).map(|source| source.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "header",
            "header:",
            "header:a b",
            "cookie:a=b",
            "path:0",
            "path:33",
            "path:x",
            "body:",
            "body:a..b",
            "form:x",
            "jwt:",
            "certificate:issuer",
            "Header:x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_bar_before_another_part_separates_alternatives() {
        for (text, parts) in [
            ("header:a", vec!["header:a"]),
            ("header:a|query:b", vec!["header:a", "query:b"]),
            ("header:a | query:b |const:c", vec!["header:a", "query:b", "const:c"]),
            ("const:x|y", vec!["const:x|y"]),
            ("const:x|y|header:a", vec!["const:x|y", "header:a"]),
            ("header:a|b", vec!["header:a|b"]),
            ("query:é|path:1", vec!["query:é", "path:1"]),
            ("header:a|", vec!["header:a|"]),
        ] {
            assert_eq!(split_alternatives(text), parts, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(
            kind in "(header|cookie|query|path|body|jwt|certificate|const|x)",
            name in "\\PC{0,40}",
        ) {
            if let Some(source) = parse(&format!("{kind}:{name}")) {
                prop_assert_eq!(parse(&source.to_string()), Some(source));
            }
        }
    }
}
