//! Routing: which gate an HTTP-shaped request passes.
//!
//! One canonical form of a path is matched, so that no spelling of it reaches another rule. The
//! first match in file order
//! wins. Must not read bodies.

use crate::catalog::{Catalog, Pick, Route};

/// An HTTP-shaped request, as far as routing reads it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, with or without a query.
    pub target: &'a str,
}

/// A request's path in its canonical form: decoded once, without empty or dot segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The segments.
    pub segments: Vec<String>,
}

impl Path {
    /// The canonical form; `None` when an encoding is broken or hides a separator.
    pub fn of(target: &str) -> Option<Self> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let mut segments: Vec<String> = Vec::new();
        for raw in path.split('/') {
            let segment = decode(raw)?;
            match &*segment {
                "" | "." => {}
                ".." => drop(segments.pop()),
                _ => segments.push(segment),
            }
        }
        Some(Self { segments })
    }
}

/// Decodes once; an encoded separator, a control character or broken text has no canonical form.
pub(crate) fn decode(raw: &str) -> Option<String> {
    if !raw.contains('%') {
        return Some(raw.to_owned());
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' { hex(rest.next()?)? << 4 | hex(rest.next()?)? } else { byte };
        bytes.push(byte);
    }
    let text = String::from_utf8(bytes).ok()?;
    let ambiguous = |c: char| matches!(c, '/' | '\\' | '%') || c.is_control();
    (!text.contains(ambiguous)).then_some(text)
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

impl Catalog {
    /// The first route that a request takes, with its canonical path.
    pub fn route(&self, request: &Request<'_>) -> Option<(&Route, Path)> {
        let path = Path::of(request.target)?;
        let matches = |route: &&Route| takes(route, request.method, &path.segments);
        self.routes.iter().find(matches).map(|route| (route, path))
    }
}

fn takes(route: &Route, method: &str, segments: &[String]) -> bool {
    let method_fits = route.method.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(method));
    method_fits && fits(&route.path, segments)
}

fn fits(pattern: &[String], segments: &[String]) -> bool {
    match (pattern, segments) {
        ([rest], _) if rest == "**" => true,
        ([], []) => true,
        ([first, pattern @ ..], [segment, segments @ ..]) => {
            (first == "*" || first == segment) && fits(pattern, segments)
        }
        _ => false,
    }
}

/// An attribute's value in a routed request; `header` and `query` look a name up.
pub fn pick(
    pick: &Pick,
    path: &Path,
    header: impl FnOnce(&str) -> Option<String>,
    query: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    match pick {
        Pick::Header(name) => header(name),
        Pick::Query(name) => query(name),
        Pick::Segment(place) => path.segments.get(place.checked_sub(1)?).cloned(),
        Pick::Literal(text) => Some(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(target: &str) -> Option<Vec<String>> {
        Path::of(target).map(|path| path.segments)
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        let login = Some(vec!["api".to_owned(), "login".to_owned()]);
        for spelling in [
            "/api/login",
            "//api//login/",
            "/api/./login",
            "/api/x/../login",
            "/api/%6cogin",
            "/api/login?next=/x",
            "/api/login#top",
            "/../api/login",
        ] {
            assert_eq!(segments(spelling), login, "{spelling}");
        }
        for hidden in ["/api%2flogin", "/api/%00", "/api/%zz", "/api/%2", "/api/%252f", "/%ff"] {
            assert_eq!(segments(hidden), None, "{hidden}");
        }
    }

    #[test]
    fn patterns_take_one_segment_or_the_rest() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        assert!(fits(&path("api/*/x"), &path("api/7/x")));
        assert!(!fits(&path("api/*/x"), &path("api/7/8/x")));
        assert!(fits(&path("api/**"), &path("api/7/8")));
        assert!(fits(&path("api/**"), &path("api")));
        assert!(!fits(&path("api"), &path("api/7")));
    }
}
