//! A route's `match`: an optional method and the segments of a path.
//!
//! Requests are compared decoded and segment by segment. A pattern that could match no request,
//! such as the syntax of another router, is an error.

use super::bounds::SEGMENTS_MAX;
use crate::located::{Node, Report, names};
use crate::route;

/// Methods suggested for a mistyped one; other methods are allowed.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// The method, if the route has one, and the segments of the path.
type RoutePattern = (Option<String>, Vec<String>);

/// A message and a fix.
type PatternError = (String, String);

/// Reads `match`.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<RoutePattern> {
    let text = node.text(report, "a match such as \"POST /api/orders/**\"")?.trim();
    let (method, path) = match text.split_once(char::is_whitespace) {
        Some((method, path)) => (Some(method), path.trim_start()),
        None => (None, text),
    };
    let error = method.and_then(method_error).or_else(|| path_error(path));
    if let Some((message, fix)) = error {
        report.error("bad-route", node.location, message, fix);
        return None;
    }
    // A trailing slash is ignored, as it is in the canonical paths of requests.
    let segments = path[1..].split('/').filter(|segment| !segment.is_empty());
    Some((method.map(str::to_owned), segments.map(wildcard_or_literal).collect()))
}

/// `{name}` matches any one segment, like `*`; the name is only documentation.
fn wildcard_or_literal(segment: &str) -> String {
    if is_named(segment) { "*".to_owned() } else { segment.to_owned() }
}

/// Whether every path that matches `later` also matches `earlier`. `**` matches any rest of a path,
/// also an empty one.
pub(super) fn covers_path(earlier: &[String], later: &[String]) -> bool {
    match (earlier.split_first(), later.split_first()) {
        (Some((first, _)), _) if first == "**" => true,
        (Some((first, rest)), Some((other, others))) => {
            let same = first == other || (first == "*" && other != "**");
            same && covers_path(rest, others)
        }
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn method_error(method: &str) -> Option<PatternError> {
    let upper = method.to_ascii_uppercase();
    if upper.is_empty() || !upper.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        let message = format!("`{}` is not a method", method.escape_debug());
        return Some((message, "write METHOD /path, or /path for any method".to_owned()));
    }
    let meant = names::nearest(&upper, &METHODS).unwrap_or(&upper);
    let message = format!("`{method}` is not a known method");
    (meant != method).then(|| (message, format!("did you mean `{meant}`?")))
}

fn path_error(path: &str) -> Option<PatternError> {
    let Some(rest) = path.strip_prefix('/') else {
        return error(
            "the path does not start with a slash",
            "write a path such as /api/orders/**",
        );
    };
    if path.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#')) {
        return error("a path has no spaces, queries or fragments", "write the path alone");
    }
    let segments: Vec<&str> = rest.split('/').collect();
    if segments.len() > SEGMENTS_MAX {
        return error("the path has too many segments", "end it with ** earlier");
    }
    let last = segments.len() - 1;
    segments.into_iter().enumerate().find_map(|(at, text)| segment_error(text, at == last))
}

fn segment_error(segment: &str, last: bool) -> Option<PatternError> {
    match segment {
        "**" if !last => error("`**` matches the rest of the path", "write it last"),
        "" if !last => error("the path has an empty segment", "write one slash only"),
        "" | "*" | "**" => None,
        "." | ".." => error("`.` and `..` are not allowed", "write the path that they lead to"),
        text if text.contains('*') => {
            error("`*` matches a whole segment", "write * alone between slashes")
        }
        text if text.contains('%') => Some(encoding_error(text)),
        text if text.contains(';') => {
            error("`;` begins parameters, which are ignored in requests", "leave them out")
        }
        text if text.contains('\\') => {
            error("a request with a backslash in its path is refused", "write / between segments")
        }
        text if is_named(text) => None,
        text if is_other_syntax(text) => {
            let message = format!("`{text}` would match only itself");
            Some((message, "write * or {name} for any one segment, ** for the rest".to_owned()))
        }
        _ => None,
    }
}

fn error(message: &str, fix: &str) -> Option<PatternError> {
    Some((message.to_owned(), fix.to_owned()))
}

/// Requests are compared decoded, so a percent-encoded segment would match none.
fn encoding_error(segment: &str) -> PatternError {
    let message = format!("`{segment}` is encoded, and requests are compared decoded");
    let plain = route::decode(segment).ok();
    let plain = plain.filter(|plain| !plain.contains(['*', ' ', '?', '#', '/', ';']));
    let fix = plain
        .map_or_else(|| "write * for any one segment".to_owned(), |plain| format!("write {plain}"));
    (message, fix)
}

/// `{name}`: any one segment.
fn is_named(segment: &str) -> bool {
    let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    name.is_some_and(|name| !name.is_empty() && name.chars().all(allowed))
}

/// Whether a segment is a placeholder in the syntax of another router, such as `:id` or `<id>`.
fn is_other_syntax(segment: &str) -> bool {
    let wrapped = |open, close| segment.starts_with(open) && segment.ends_with(close);
    let braces = segment.contains(['{', '}']);
    braces || segment.starts_with(':') || wrapped('<', '>') || wrapped('[', ']')
}
