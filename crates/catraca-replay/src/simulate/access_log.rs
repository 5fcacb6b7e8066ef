//! Converts lines of access logs to the checks that a gateway would have made.
//!
//! The gate comes from the catalog's routes, address and attributes from the request, and the
//! outcome from the status, so a log is decided as `/v1/authorize` would have decided it. Errors
//! must not contain values of the line: they may be private.

mod combined;
mod fields;
mod json_log;
mod json_scalar;
mod log_field;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;
use std::net::IpAddr;

use catraca::core::address::forwarded::{AddressSource, find_client};
use catraca::core::address::{Address, AddressRange};
use catraca::core::catalog::{AttributeSource, RouteCostTerm};
use catraca::core::route::{CanonicalPath, RouteRequest, UNROUTED, attribute_value};
use catraca::{Catalog, Time};
use smallvec::SmallVec;

use super::event::{
    At, CheckEvent, Event, EventAttributes, EventKind, EventText, RoutedCheck, TimeNotation,
};
use super::line_reader::{HistoryLine, LINE_BYTES_MAX};
use super::planned_line::ParsedLine;
use super::source::Batch;

pub use log_field::{Field, LogField};
use time::LastTime;

/// The header in which proxies write the addresses of their clients.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Parses the lines of one format for one catalog.
pub struct LineParser<'c> {
    catalog: &'c Catalog,
    /// The gate for every line, instead of the routes'.
    gate: Option<&'c str>,
    syntax: Syntax,
}

/// The format of a history.
#[derive(Clone, Debug)]
pub enum HistoryFormat {
    /// JSON lines, one event each.
    Events,
    /// The combined log format of Apache and nginx.
    Combined {
        /// The gate for every line, instead of the routes'.
        gate: Option<String>,
    },
    /// An access log as JSON lines.
    Json {
        /// The gate for every line, instead of the routes'.
        gate: Option<String>,
        /// Paths of fields, instead of the default ones.
        fields: Vec<Field>,
    },
}

/// How a line is parsed.
enum Syntax {
    Events,
    Combined {
        /// Whether the catalog reads the headers that the format has.
        reads_headers: bool,
    },
    Json(Box<fields::PathTree>),
}

/// One request of a log.
#[derive(Debug, PartialEq)]
struct LogRequest<'a> {
    time: Time,
    /// The address of the peer, as written.
    ip: Cow<'a, str>,
    /// Method and target; `None` if the client sent something other than HTTP.
    request: Option<(Cow<'a, str>, Cow<'a, str>)>,
    status: Option<u16>,
    /// Logged headers that the catalog may read, with names in lower case.
    headers: LogHeaders<'a>,
}

/// Why a line is not an event.
#[derive(Debug, PartialEq)]
pub enum LineError {
    /// The line cannot be parsed.
    Invalid(String),
    /// The server would respond to the request with 400 before it evaluates any policy.
    Refused(String),
}

impl From<String> for LineError {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}

/// Request headers.
type LogHeaders<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

impl<'c> LineParser<'c> {
    /// A parser of a format, for the routes of a catalog.
    pub fn new(catalog: &'c Catalog, format: &'c HistoryFormat) -> Self {
        let (gate, syntax) = match format {
            HistoryFormat::Events => (&None, Syntax::Events),
            HistoryFormat::Combined { gate } => {
                let used = used_headers(catalog);
                let reads_headers = used.iter().any(|name| combined::HEADERS.contains(&&**name));
                (gate, Syntax::Combined { reads_headers })
            }
            HistoryFormat::Json { gate, fields } => {
                let tree = fields::tree(fields, &used_headers(catalog));
                (gate, Syntax::Json(Box::new(tree)))
            }
        };
        Self { catalog, gate: gate.as_deref(), syntax }
    }

    /// Whether the history is an access log, whose lines may be slightly out of order.
    pub fn is_log(&self) -> bool {
        !matches!(self.syntax, Syntax::Events)
    }

    /// Parses the lines of a batch.
    pub fn parse<'a>(&'a self, batch: &'a Batch) -> Vec<ParsedLine<'a>> {
        let mut times = LastTime::default();
        let mut read = |(number, line)| ParsedLine { number, event: self.read(line, &mut times) };
        batch.lines().map(&mut read).collect()
    }

    fn read<'a>(
        &'a self,
        line: HistoryLine<'a>,
        times: &mut LastTime,
    ) -> Result<Event<'a>, LineError> {
        match line {
            HistoryLine::Text(text) => self.read_text(text, times),
            HistoryLine::TooLong => {
                Err(format!("the line has more than {LINE_BYTES_MAX} bytes").into())
            }
        }
    }

    fn read_text<'a>(
        &'a self,
        line: &'a [u8],
        times: &mut LastTime,
    ) -> Result<Event<'a>, LineError> {
        match &self.syntax {
            Syntax::Events => Ok(Event::read(line)?),
            Syntax::Combined { reads_headers } => {
                self.check(combined::read(line, *reads_headers, times)?)
            }
            Syntax::Json(tree) => self.check(json_log::read(line, tree)?),
        }
    }

    fn check<'a>(&'a self, request: LogRequest<'a>) -> Result<Event<'a>, LineError> {
        let at = At { time: request.time, written: TimeNotation::Logged(request.time) };
        let ip = self.client(&request)?;
        let mut subject = EventAttributes::new();
        let routed = self.routed_check(&request, &mut subject)?;
        subject.push((EventText::from("ip"), ip.into()));
        let check = CheckEvent::from_log(routed, subject, request.status);
        Ok(Event { at, kind: EventKind::Check(check) })
    }

    /// The gate and what its route says of the check; adds the attributes that the route reads to
    /// `subject`. Parts that no log has, such as bodies, are absent.
    fn routed_check<'a>(
        &'a self,
        request: &LogRequest<'a>,
        subject: &mut EventAttributes<'a>,
    ) -> Result<RoutedCheck<'a>, LineError> {
        if let Some(gate) = self.gate {
            return Ok(RoutedCheck::of_gate(gate.into()));
        }
        let Some((method, target)) = &request.request else {
            return Ok(RoutedCheck::of_gate(self.gate_without_route(request)?));
        };
        let routed = self.catalog.route(&RouteRequest { method, target }).map_err(|why| {
            let why = format!("ambiguous path, which the server answers with 400: {why}");
            LineError::Refused(why)
        })?;
        let Some((route, path)) = routed else {
            return Ok(RoutedCheck::of_gate(self.gate_without_route(request)?));
        };
        // `ip` always comes from the connection or a trusted proxy, never from a route.
        for (name, from) in route.set.iter().filter(|(name, _)| **name != *"ip") {
            if subject.iter().any(|(own, _)| **own == **name) {
                continue;
            }
            if let Some(value) = picked_value(from, &path, target, &request.headers) {
                subject.push((EventText::from(&**name), value.into()));
            }
        }
        let value_of = |name: &str| {
            let found = subject.iter().find(|(own, _)| **own == *name);
            found.map(|(_, value)| &**value)
        };
        let gate = route.gate_for(self.catalog, value_of);
        let gate = gate.map_err(|why| LineError::Refused(why.to_string()))?;
        let units_of = |term: &RouteCostTerm| -> Result<Option<i64>, LineError> {
            Ok(match term {
                RouteCostTerm::Units(units) => Some(*units),
                RouteCostTerm::Parts(parts) => parts.units(|from| {
                    let text = picked_value(from, &path, target, &request.headers);
                    text.map(|text| whole_number(from, &text)).transpose()
                })?,
                // A log does not have the bodies of requests.
                RouteCostTerm::BytesPerUnit(_) => None,
            })
        };
        let cost = route.cost.as_ref().map(|cost| cost.sum(units_of)).transpose()?.flatten();
        Ok(RoutedCheck { gate: EventText::from(&**gate), cost, lists: route.lists })
    }

    fn gate_without_route<'a>(&self, request: &LogRequest<'a>) -> Result<EventText<'a>, LineError> {
        if self.catalog.default.is_some() {
            return Ok(UNROUTED.into());
        }
        let method = request.request.as_ref().map(|(method, _)| method_text(method));
        let what = method.unwrap_or_else(|| "request".to_owned());
        Err(LineError::Invalid(format!(
            "no `[[route]]` matches this {what}, and the catalog has no `default`: add one of the \
             two, or set one gate for all lines with --gate"
        )))
    }

    /// The client's address: the peer, or the address that a trusted proxy forwards.
    fn client<'a>(&self, request: &LogRequest<'a>) -> Result<Cow<'a, str>, String> {
        let trusted = &self.catalog.network.trusted_proxies;
        if trusted.is_empty() {
            return Ok(request.ip.clone());
        }
        // An invalid address is passed on: the engine rejects it with its standard message.
        let Ok(peer) = Address::parse(&request.ip) else { return Ok(request.ip.clone()) };
        Ok(Cow::Owned(forwarded_client(peer.ip(), &request.headers, trusted)))
    }
}

fn forwarded_client(peer: IpAddr, headers: &LogHeaders<'_>, trusted: &[AddressRange]) -> String {
    let lines = headers.iter().filter(|(name, _)| name == FORWARDED_FOR);
    let lines: Vec<&str> = lines.map(|(_, value)| &**value).collect();
    find_client(peer, &lines, &AddressSource::XForwardedFor, trusted).address.to_string()
}

fn picked_value(
    from: &AttributeSource,
    path: &CanonicalPath,
    target: &str,
    headers: &LogHeaders<'_>,
) -> Option<String> {
    let header = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.to_string())
    };
    let query = |wanted: &str| {
        let (_, query) = target.split_once('?')?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    attribute_value(from, path, header, query)
}

/// The number in a part of a request. The message has no value of the line.
fn whole_number(from: &AttributeSource, text: &str) -> Result<i64, LineError> {
    text.trim().parse().map_err(|_| {
        let why = "of the request is not a whole number, which the server answers with 400";
        LineError::Refused(format!("`{from}` {why}"))
    })
}

/// The headers that a decision may depend on, in lower case.
fn used_headers(catalog: &Catalog) -> Vec<String> {
    let sources = catalog.routes.iter().flat_map(|route| route.sources());
    let named = sources.filter_map(|source| match source {
        AttributeSource::Header(name) => Some(name.to_ascii_lowercase()),
        AttributeSource::Cookie(_) => Some("cookie".to_owned()),
        AttributeSource::Query(_)
        | AttributeSource::Segment(_)
        | AttributeSource::Body(_)
        | AttributeSource::Claim(_)
        | AttributeSource::Certificate(_)
        | AttributeSource::Literal(_) => None,
    });
    let mut names: Vec<String> = named.chain([FORWARDED_FOR.to_owned()]).collect();
    names.sort();
    names.dedup();
    names
}

/// Method and target of a request line; `None` if it is not HTTP.
fn request_line(text: &str) -> Option<(&str, &str)> {
    let (method, rest) = text.split_once(' ')?;
    // Mostly the last word is the version.
    let last = rest.rsplit_once(' ').filter(|(_, version)| version.starts_with("HTTP/"));
    let target = last.or_else(|| rest.rsplit_once(" HTTP/")).map_or(rest, |(target, _)| target);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_method && !target.is_empty()).then_some((method, origin_form(target)))
}

/// Removes scheme and host of an absolute-form target, which clients send to proxies.
fn origin_form(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| !scheme.contains('/'))
    else {
        return target;
    };
    rest.find('/').map_or("/", |start| &rest[start..])
}

/// A method for an error message: letters only, and cut, because any client can send any text.
fn method_text(method: &str) -> String {
    method.chars().take(16).filter(|c| c.is_ascii_alphabetic()).collect()
}
