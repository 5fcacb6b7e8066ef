//! Access logs: a line of one becomes the check that a gateway would have made.
//!
//! The gate comes from the catalog's routes, the address and the attributes from the request, the
//! outcome from its status; so a log is decided as `/v1/authorize` would have decided it. Must not
//! touch the engine, and must not echo a value of a line in an error: it may be private.

mod combined;
mod fields;
mod json;
mod leaf;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;
use std::net::IpAddr;

use anyhow::{Result, bail};
use catraca::core::address::forwarded::{Source, client};
use catraca::core::address::{Address, Range};
use catraca::core::catalog::{Pick, Route};
use catraca::core::route::{Path, Request, UNROUTED, pick};
use catraca::{Catalog, Time};
use smallvec::SmallVec;

use super::event::{At, Attributes, CheckEvent, Event, Kind, Text, Written};
use crate::args::{Format, Simulate};
pub use fields::Field;

/// What proxies write their callers' addresses to.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Reads the lines of one format under one catalog.
pub struct Reader<'c> {
    catalog: &'c Catalog,
    /// The gate of every line, instead of what the routes say.
    gate: Option<&'c str>,
    syntax: Syntax,
}

/// How lines are written.
enum Syntax {
    Events,
    Combined,
    Json(Box<fields::Node>),
}

/// One request of a log.
#[derive(Debug, PartialEq)]
struct Logged<'a> {
    time: Time,
    /// The other end of the connection, as written.
    ip: Cow<'a, str>,
    /// Method and target; absent when what was sent is no request.
    request: Option<(Cow<'a, str>, Cow<'a, str>)>,
    status: Option<u16>,
    /// Headers that the log has and the catalog may read, names in lower case.
    headers: Headers<'a>,
}

/// Why a line is not an event.
#[derive(Debug, PartialEq)]
pub enum LineError {
    /// The line cannot be read.
    Invalid(String),
    /// The line is a request that the server answers with 400 before any policy is asked.
    Refused(String),
}

impl From<String> for LineError {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

/// Request headers.
type Headers<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

impl<'c> Reader<'c> {
    /// A reader of what the command line asks for.
    pub fn new(catalog: &'c Catalog, args: &'c Simulate) -> Result<Self> {
        if args.format != Format::Json && !args.field.is_empty() {
            bail!("--field says where things are in a JSON log; add --format json");
        }
        if args.format == Format::Events && args.gate.is_some() {
            bail!("--gate is for access logs; an event names its own gate");
        }
        let syntax = match args.format {
            Format::Events => Syntax::Events,
            Format::Combined => Syntax::Combined,
            Format::Json => Syntax::Json(fields::tree(&args.field, &headers_read(catalog)).into()),
        };
        Ok(Self { catalog, gate: args.gate.as_deref(), syntax })
    }

    /// Whether lines are written as requests end, so that they may be a little out of order.
    pub fn is_log(&self) -> bool {
        !matches!(self.syntax, Syntax::Events)
    }

    /// Reads a line; the error says what is wrong with it.
    pub fn read<'a>(&'a self, line: &'a [u8]) -> Result<Event<'a>, LineError> {
        match &self.syntax {
            Syntax::Events => Ok(Event::read(line)?),
            Syntax::Combined => self.check(combined::read(line)?),
            Syntax::Json(tree) => self.check(json::read(line, tree)?),
        }
    }

    fn check<'a>(&'a self, logged: Logged<'a>) -> Result<Event<'a>, LineError> {
        let at = At { time: logged.time, written: Written::Logged(logged.time) };
        let ip = self.client(&logged)?;
        let mut subject = Attributes::new();
        let gate = self.gate(&logged, &mut subject)?;
        subject.push((Text::from("ip"), ip.into()));
        Ok(Event { at, kind: Kind::Check(CheckEvent::logged(gate, subject, logged.status)) })
    }

    /// The gate, and the attributes that its route takes from the request.
    fn gate<'a>(
        &'a self,
        logged: &Logged<'a>,
        subject: &mut Attributes<'a>,
    ) -> Result<Text<'a>, LineError> {
        if let Some(gate) = self.gate {
            return Ok(gate.into());
        }
        let Some((method, target)) = &logged.request else { return self.unrouted(logged) };
        let routed = self.catalog.route(&Request { method, target }).map_err(|why| {
            let why = format!("ambiguous path, which the server answers with 400: {why}");
            LineError::Refused(why)
        })?;
        let Some((route, path)) = routed else { return self.unrouted(logged) };
        for (name, from) in route.set.iter().filter(|(name, _)| **name != *"ip") {
            if let Some(value) = picked(from, &path, target, &logged.headers) {
                subject.push((Text::from(&**name), value.into()));
            }
        }
        Ok(gate_of(route))
    }

    fn unrouted<'a>(&self, logged: &Logged<'a>) -> Result<Text<'a>, LineError> {
        if self.catalog.default.is_some() {
            return Ok(UNROUTED.into());
        }
        let method = logged.request.as_ref().map(|(method, _)| shown(method));
        let what = method.unwrap_or_else(|| "such a request".to_owned());
        Err(LineError::Invalid(format!(
            "no `[[route]]` takes this {what}, and the catalog has no `default`: add one of the \
             two, or choose one gate for all with --gate"
        )))
    }

    /// Who asked: the peer, or whoever a trusted proxy says it speaks for.
    fn client<'a>(&self, logged: &Logged<'a>) -> Result<Cow<'a, str>, String> {
        let trusted = &self.catalog.network.trusted_proxies;
        if trusted.is_empty() {
            return Ok(logged.ip.clone());
        }
        // What is no address is refused by whoever reads `ip`, in the same words as anywhere else.
        let Ok(peer) = Address::parse(&logged.ip) else { return Ok(logged.ip.clone()) };
        Ok(Cow::Owned(forwarded(peer.ip(), &logged.headers, trusted)))
    }
}

fn gate_of(route: &Route) -> Text<'_> {
    Text::from(&*route.gate)
}

fn forwarded(peer: IpAddr, headers: &Headers<'_>, trusted: &[Range]) -> String {
    let lines = headers.iter().filter(|(name, _)| name == FORWARDED_FOR);
    let lines: Vec<&str> = lines.map(|(_, value)| &**value).collect();
    client(peer, &lines, &Source::XForwardedFor, trusted).address.to_string()
}

fn picked(from: &Pick, path: &Path, target: &str, headers: &Headers<'_>) -> Option<String> {
    let header = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.to_string())
    };
    let query = |wanted: &str| {
        let (_, query) = target.split_once('?')?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    pick(from, path, header, query)
}

/// The headers that a decision may depend on, in lower case.
fn headers_read(catalog: &Catalog) -> Vec<String> {
    let picks = catalog.routes.iter().flat_map(|route| &route.set);
    let named = picks.filter_map(|(_, pick)| match pick {
        Pick::Header(name) => Some(name.to_ascii_lowercase()),
        Pick::Query(_) | Pick::Segment(_) | Pick::Literal(_) => None,
    });
    let mut names: Vec<String> = named.chain([FORWARDED_FOR.to_owned()]).collect();
    names.sort();
    names.dedup();
    names
}

/// Method and target of a request line; `None` for what clients send that is no HTTP.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let (method, rest) = text.split_once(' ')?;
    let target = rest.rsplit_once(" HTTP/").map_or(rest, |(target, _)| target);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_method && !target.is_empty()).then_some((method, origin_form(target)))
}

/// A target without scheme and host, which clients write to proxies.
fn origin_form(target: &str) -> &str {
    let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| !scheme.contains('/'))
    else {
        return target;
    };
    rest.find('/').map_or("/", |start| &rest[start..])
}

/// A method as an error may show it.
fn shown(method: &str) -> String {
    method.chars().take(16).filter(|c| c.is_ascii_alphabetic()).collect()
}
