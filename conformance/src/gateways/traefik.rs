//! Traefik's part of the conversation, replayed: no package of it can be installed here.
//!
//! What its documentation says of entry points (forwarded headers of clients that are not trusted
//! are removed), of the headers middleware of the guide, and of ForwardAuth with
//! `trustForwardHeader: false`. Must not be kinder than Traefik: every other header of a client
//! goes to Catraca and to the application.

use std::net::Ipv4Addr;

use anyhow::Result;

use super::client::{Route, exchange};
use super::message::{Request, Response};
use super::snippets::Guide;
use super::upstream::Upstream;

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

/// Traefik between a client and an application.
pub(crate) struct Traefik<'a> {
    removed: Vec<String>,
    call: String,
    catraca: u16,
    upstream: &'a Upstream,
}

impl<'a> Traefik<'a> {
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
            .header("X-Forwarded-Uri", request_uri(&entered.target))
    }
}

impl Route for Traefik<'_> {
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
