//! A route's `match`: a method, or any, and the segments of a path.
//!
//! Requests are compared decoded, segment by segment, so a spelling that could only ever be itself
//! is refused instead of being kept. Must not match requests: `route` does.

use super::bounds::SEGMENTS_MAX;
use super::names;
use super::node::Node;
use super::report::Report;
use crate::route;

/// Methods that a mistyped one is compared with; others are allowed.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// A method, or any, and the segments of a path.
type Pattern = (Option<String>, Vec<String>);

/// What is wrong, and what to write instead.
type Wrong = (String, String);

/// Reads a match.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<Pattern> {
    let text = node.text(report, "a match such as \"POST /api/orders/**\"")?.trim();
    let (method, path) = match text.split_once(char::is_whitespace) {
        Some((method, path)) => (Some(method), path.trim_start()),
        None => (None, text),
    };
    let wrong = method.and_then(wrong_method).or_else(|| wrong_path(path));
    if let Some((message, fix)) = wrong {
        report.error("bad-route", node.place, message, fix);
        return None;
    }
    // A closing slash names the same place: requests are read without it too.
    let segments = path[1..].split('/').filter(|segment| !segment.is_empty());
    Some((method.map(str::to_owned), segments.map(plain).collect()))
}

/// A named segment is any segment: the name is for whoever reads the catalog.
fn plain(segment: &str) -> String {
    if is_named(segment) { "*".to_owned() } else { segment.to_owned() }
}

/// Whether every path of `later` is one of `earlier`; `**` takes any rest, an empty one too.
pub(super) fn takes_all(earlier: &[String], later: &[String]) -> bool {
    match (earlier.split_first(), later.split_first()) {
        (Some((first, _)), _) if first == "**" => true,
        (Some((first, rest)), Some((other, others))) => {
            let same = first == other || (first == "*" && other != "**");
            same && takes_all(rest, others)
        }
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn wrong_method(method: &str) -> Option<Wrong> {
    let upper = method.to_ascii_uppercase();
    if upper.is_empty() || !upper.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        let message = format!("`{}` is not a method", method.escape_debug());
        return Some((message, "write METHOD /path, or /path for any method".to_owned()));
    }
    let meant = names::nearest(&upper, &METHODS).unwrap_or(&upper);
    let message = format!("`{method}` is not a method that requests have");
    (meant != method).then(|| (message, format!("did you mean `{meant}`?")))
}

fn wrong_path(path: &str) -> Option<Wrong> {
    let Some(rest) = path.strip_prefix('/') else {
        return says("the path does not start with a slash", "write a path such as /api/orders/**");
    };
    if path.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#')) {
        return says("a path has no spaces, queries or fragments", "write the path alone");
    }
    let segments: Vec<&str> = rest.split('/').collect();
    if segments.len() > SEGMENTS_MAX {
        return says("the path has too many segments", "end it with ** earlier");
    }
    let last = segments.len() - 1;
    segments.into_iter().enumerate().find_map(|(at, text)| wrong_segment(text, at == last))
}

fn wrong_segment(segment: &str, last: bool) -> Option<Wrong> {
    match segment {
        "**" if !last => says("`**` takes the rest of the path", "write it last"),
        "" if !last => says("the path has an empty segment", "write one slash only"),
        "" | "*" | "**" => None,
        "." | ".." => says("a path has no dots for directories", "write where it leads"),
        text if text.contains('*') => {
            says("`*` stands for a whole segment", "write * alone between slashes")
        }
        text if text.contains('%') => Some(encoded(text)),
        text if text.contains(';') => {
            says("`;` begins parameters, which requests are compared without", "leave them out")
        }
        text if text.contains('\\') => {
            says("a request with a backslash in its path is refused", "write / between segments")
        }
        text if is_named(text) => None,
        text if is_foreign(text) => {
            let message = format!("`{text}` would match only itself");
            Some((message, "write * or {name} for any one segment, ** for the rest".to_owned()))
        }
        _ => None,
    }
}

fn says(message: &str, fix: &str) -> Option<Wrong> {
    Some((message.to_owned(), fix.to_owned()))
}

/// Paths are compared decoded, so an encoded segment would match nothing.
fn encoded(segment: &str) -> Wrong {
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

/// The placeholders of other routers: nobody means them as text.
fn is_foreign(segment: &str) -> bool {
    let wrapped = |open, close| segment.starts_with(open) && segment.ends_with(close);
    let braces = segment.contains(['{', '}']);
    braces || segment.starts_with(':') || wrapped('<', '>') || wrapped('[', ']')
}
