//! Traefik's part of the conversation, replayed, for runs that do not build Traefik.
//!
//! What its documentation says of entry points (paths are cleaned, forwarded headers of clients
//! that are not trusted are removed), of the headers middleware of the guide, and of ForwardAuth
//! with `trustForwardHeader: false`. A deep run compares it with Traefik. Must not be kinder than
//! Traefik: every other header of a client goes to Catraca and to the application.

use std::net::Ipv4Addr;

use anyhow::Result;

use super::client::{Route, exchange};
use super::message::{Request, Response};
use super::snippets::Guide;
use super::upstream::Upstream;

pub(crate) const NAME: &str = "traefik (replay)";
/// Removed by an entry point without `forwardedHeaders.insecure`.
const FORWARDED: [&str; 8] = [
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Method",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Forwarded-Server",
    "X-Forwarded-Uri",
    "X-Real-Ip",
];

/// Answers a client as Traefik would, between it and an application.
pub(crate) struct TraefikReplay<'a> {
    removed: Vec<String>,
    call: String,
    catraca: u16,
    upstream: &'a Upstream,
}

impl<'a> TraefikReplay<'a> {
    pub(crate) fn new(guide: &Guide, catraca: u16, upstream: &'a Upstream) -> Result<Self> {
        let config = guide.gateway("traefik")?;
        let empty = config.lines().filter_map(|line| line.trim().strip_suffix(": \"\""));
        let removed = empty.chain(FORWARDED).map(str::to_owned).collect();
        let address = config.lines().find_map(|line| line.split_once("127.0.0.1:7878"));
        let call = address.map(|(_, path)| path.trim().to_owned()).unwrap_or_default();
        Ok(Self { removed, call, catraca, upstream })
    }

    /// What the middlewares behind the entry point see.
    fn at_entry_point(&self, request: &Request) -> Request {
        let is_kept = |name: &str| !self.removed.iter().any(|own| own.eq_ignore_ascii_case(name));
        let mut entered = request.clone();
        entered.target = clean(request_uri(&request.target));
        let dropped: Vec<String> = request.values("Connection").map(str::to_lowercase).collect();
        let is_hop = |name: &str| {
            let listed = dropped.iter().flat_map(|line| line.split(',')).map(str::trim);
            name.eq_ignore_ascii_case("Connection") || listed.into_iter().any(|own| own == name)
        };
        entered.headers.retain(|(name, _)| is_kept(name) && !is_hop(&name.to_lowercase()));
        entered
    }

    /// The question of ForwardAuth: a GET with the client's headers and those of Traefik.
    fn question(&self, from: Ipv4Addr, entered: &Request) -> Request {
        let mut question = Request::get(&self.call);
        question.headers = entered.headers.clone();
        question
            .header("X-Forwarded-For", &from.to_string())
            .header("X-Forwarded-Method", &entered.method)
            .header("X-Forwarded-Proto", "http")
            .header("X-Forwarded-Host", "site.example")
            .header("X-Forwarded-Uri", &entered.target)
    }
}

impl Route for TraefikReplay<'_> {
    fn send(&self, from: Ipv4Addr, request: &Request) -> Result<Response> {
        let entered = self.at_entry_point(request);
        let answer = exchange(Ipv4Addr::LOCALHOST, self.catraca, &self.question(from, &entered))?;
        if (200..300).contains(&answer.status) {
            self.upstream.note(entered);
        }
        Ok(answer)
    }
}

/// The path and query of a target in absolute form.
fn request_uri(target: &str) -> &str {
    match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    }
}

/// The path without empty and dot segments, as an entry point rewrites it for all that follow.
fn clean(target: &str) -> String {
    let query = target.find('?').unwrap_or(target.len());
    let path = decode_unreserved(&target[..query]);
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}{}", segments.join("/"), &target[query..])
}

/// Percent-encoded letters, digits and `-._~` as themselves.
fn decode_unreserved(path: &str) -> String {
    let mut decoded = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let code = after.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        let unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        match code.filter(unreserved) {
            Some(byte) => {
                decoded.push(char::from(byte));
                rest = &after[2..];
            }
            None => {
                decoded.push('%');
                rest = after;
            }
        }
    }
    decoded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cleaned_as_by_an_entry_point() {
        for (sent, passed) in [
            ("//x/../login/.?a=/../b", "/login?a=/../b"),
            ("/%6cogin/%2e%2e/free/", "/free/"),
            ("/login//..", "/"),
            ("/%2flogin%", "/%2flogin%"),
            ("/../..;/login", "/..;/login"),
        ] {
            assert_eq!(clean(sent), passed);
        }
    }
}
