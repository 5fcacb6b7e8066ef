//! What an application could take a request for, if it reads as generously as any does.
//!
//! Independent of Catraca's own canonical form, which it judges: it decodes again and again, obeys
//! headers that replace the path, and forgives everything. Must not share code with the server.

use super::message::Request;

/// Headers whose value some framework takes for the path, and for the method.
const PATHS: [&str; 4] = ["X-Original-URL", "X-Original-URI", "X-Rewrite-URL", "X-Forwarded-Uri"];
const METHODS: [&str; 5] = [
    "X-HTTP-Method-Override",
    "X-HTTP-Method",
    "X-Method-Override",
    "X-Original-Method",
    "X-Forwarded-Method",
];
/// More layers of encoding than any application removes.
const LAYERS: usize = 4;

/// Whether some application would serve this as a request that the catalog guards.
pub(crate) fn is_guarded(request: &Request) -> bool {
    let replaced = PATHS.iter().flat_map(|name| request.values(name)).map(str::to_owned);
    let prefixes = request.values("X-Forwarded-Prefix");
    let prefixed = prefixes.map(|prefix| format!("{prefix}{}", request.target));
    let own = std::iter::once(request.target.clone());
    let targets = own.chain(replaced).chain(prefixed);
    let pages: Vec<String> = targets.flat_map(|target| pages(&target)).collect();
    let mut methods = METHODS.iter().flat_map(|name| request.values(name));
    let is_post = request.method == "POST" || methods.any(|m| m.eq_ignore_ascii_case("POST"));
    pages.iter().any(|page| page == "login" || (is_post && page == "orders"))
}

/// The first segment of a path in lower case, by every reading that some application has.
fn pages(target: &str) -> Vec<String> {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("", |at| &rest[at..]),
        _ => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = (0..LAYERS).fold(path.to_owned(), |path, _| decode(&path)).replace('\\', "/");
    let path = path.split('\0').next().unwrap_or_default();
    // A URL parser takes what follows two slashes for a host name.
    let after_host = path.strip_prefix("//").map(|rest| rest.trim_start_matches('/'));
    let after_host = after_host.map(|rest| rest.find('/').map_or("", |at| &rest[at..]));
    let paths = std::iter::once(path).chain(after_host);
    paths.flat_map(|path| READINGS.map(|reading| first_segment(path, reading))).collect()
}

/// What applications do with `..`.
#[derive(Clone, Copy)]
enum ParentSegment {
    /// It is a name like any other.
    IsName,
    /// It removes the segment before it, also an empty one.
    RemovesAny,
    /// It removes the last segment that is not empty.
    RemovesName,
}

const READINGS: [ParentSegment; 3] =
    [ParentSegment::IsName, ParentSegment::RemovesAny, ParentSegment::RemovesName];

fn first_segment(path: &str, reading: ParentSegment) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match (segment.split(';').next().unwrap_or_default(), reading) {
            (".", _) => {}
            ("", ParentSegment::RemovesName | ParentSegment::IsName) => {}
            ("..", ParentSegment::RemovesAny | ParentSegment::RemovesName) => drop(segments.pop()),
            (plain, _) => segments.push(plain),
        }
    }
    let first = segments.into_iter().find(|segment| !segment.is_empty());
    first.map(str::to_lowercase).unwrap_or_default()
}

/// One layer of percent-encoding; what is none stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_as_the_page() {
        for target in [
            "/login",
            "//login/",
            "/x/../login",
            "/%6cogin",
            "/%256cogin",
            "/x/..%2flogin",
            "/\\login",
            "/login%00.png",
            "/LOGIN;x=1",
            "/x/..;/login",
            "http://site/login",
            "/login#x",
            "/login?a",
            "//x/login",
            "/login//..",
            "/login/;x/..",
            "/login/../free",
        ] {
            assert!(is_guarded(&Request::get(target)), "{target}");
        }
        for target in ["/", "/free", "/v1/login", "/x?/login", "http://login"] {
            assert!(!is_guarded(&Request::get(target)), "{target}");
        }
    }

    #[test]
    fn headers_that_replace_path_or_method_count() {
        assert!(is_guarded(&Request::get("/free").header("x-rewrite-url", "/login")));
        assert!(is_guarded(&Request::get("/").header("X-Forwarded-Prefix", "/login")));
        assert!(is_guarded(&Request::get("/orders").header("X-HTTP-Method-Override", "post")));
        assert!(!is_guarded(&Request::get("/orders")));
    }
}
