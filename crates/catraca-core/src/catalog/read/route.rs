//! `[[route]]`: the gate, attributes and upstream of HTTP requests by method and path.
//!
//! Routes are tried in the order of the text, and the first that matches wins.

use super::attribute::AttributeTable;
use super::bounds::{ROUTES_MAX, UPSTREAMS_MAX};
use super::gate::Gates;
use super::route_source::SOURCE;
use super::section::Sections;
use super::{route_cost, route_gate, route_pattern, route_source, upstream};
use crate::catalog::{AttributeSource, PathCase, RequiredPart, Route};
use crate::located::{
    DefaultValue, FieldSchema, LocatedKey, Node, Report, TableFields, TableSchema, ValueSchema,
    names,
};
use crate::policy::Name;
use crate::route::fold_case;

/// The fields of `[[route]]`.
pub(super) static ROUTE: TableSchema = TableSchema {
    name: "route",
    fields: &[
        FieldSchema::new(
            "match",
            ValueSchema::Text,
            "an optional method and a path: `*` or `{name}` matches one segment, `**` the rest. \
             Paths are decoded, without `.` segments, empty segments or a trailing slash",
        )
        .require(),
        route_gate::GATE,
        FieldSchema::new(
            "set",
            ValueSchema::Map(&SOURCE),
            "attributes from the request: `header:NAME`, `cookie:NAME`, `query:NAME`, `path:N` \
             (the N-th segment, from one), `body:path.to.field`, `jwt:CLAIM`, \
             `certificate:subject` (or `fingerprint`, `san`), `const:TEXT`. Of \
             `\"header:a|query:b\"` the first that is present counts. Never `ip`",
        ),
        FieldSchema::new(
            "ref",
            SOURCE,
            "the part of the request that is the `ref` of its check, such as \
             `header:pi-endtoendid`",
        ),
        route_cost::COST,
        FieldSchema::new(
            "lists",
            ValueSchema::Flag,
            "`false`: only limits and blocks decide; the allowlist and the blocklist are skipped",
        )
        .or(DefaultValue::Flag(true)),
        FieldSchema::new(
            "require",
            ValueSchema::Map(&SOURCE),
            "parts that must be `true` in a request that has another part, and not as `false`: `{ \
             \"body:stream\" = \"body:stream_options.include_usage\" }`. A request without it is \
             refused, because it could not be counted",
        ),
        FieldSchema::new(
            "upstream",
            ValueSchema::AnyOf(&[
                UPSTREAM,
                ValueSchema::List { of: &UPSTREAM, most: UPSTREAMS_MAX },
            ]),
            "the server that the reverse proxy forwards to, or a list of servers: `http`, \
             `https`, or `h2c` for HTTP/2 without TLS, a host, a port, and no path",
        ),
    ],
};

/// The most parts that a route requires.
const REQUIRED_MAX: usize = 8;
const UPSTREAM: ValueSchema = ValueSchema::Url(&upstream::SCHEMES);

/// Reads all routes.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    attributes: &AttributeTable,
    gates: &Gates,
    case: PathCase,
) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let items = sections.list_items(report, "route");
    if let Some(extra) = items.get(ROUTES_MAX) {
        let message = format!("{} routes are too many", items.len());
        let fix = format!("keep at most {ROUTES_MAX}: join them with * and **");
        report.error("too-many-routes", extra.location, message, fix);
    }
    for item in items.into_iter().take(ROUTES_MAX) {
        let Some(fields) = TableFields::read_item(report, item, &ROUTE) else { continue };
        let Some(mut route) = route(report, &fields, attributes, gates) else { continue };
        if case == PathCase::Insensitive {
            // The paths of requests are in lower case then, so patterns must be too.
            route.path.iter_mut().for_each(|segment| *segment = fold_case(segment));
        }
        let location = fields.get("match").map_or(fields.location, |node| node.location);
        if routes.iter().any(|earlier| covers(earlier, &route)) {
            let message = "an earlier route matches every request of this one";
            let fix = "move this route before it, or remove it";
            report.warn("route-unreachable", location, message, fix);
        }
        routes.push(route);
    }
    routes
}

fn route(
    report: &mut Report,
    fields: &TableFields<'_>,
    attributes: &AttributeTable,
    gates: &Gates,
) -> Option<Route> {
    let pattern = fields.require(report, "match", "\"POST /api/orders/**\"");
    let pattern = pattern.and_then(|node| route_pattern::read(report, node));
    let set = fields.parse("set", |node| set(report, node, attributes)).or(Vec::new());
    let sets = |name: &str| set.iter().flatten().any(|(own, _)| **own == *name);
    let gate = fields.require(report, "gate", "\"orders\"");
    let gate = gate.and_then(|node| route_gate::read(report, node, attributes, gates, sets));
    let reference = fields.parse("ref", |node| route_source::read(report, node)).optional();
    let cost = fields.parse("cost", |node| route_cost::read(report, node)).optional();
    let lists = fields.parse("lists", |node| node.flag(report)).or(true);
    let required = fields.parse("require", |node| required_parts(report, node)).or(Vec::new());
    let upstreams = fields.parse("upstream", |node| upstream::read(report, node)).or(Vec::new());
    let (method, path) = pattern?;
    let route = Route {
        method,
        path,
        gate: gate?,
        set: set?,
        reference: reference?,
        cost: cost?,
        lists: lists?,
        required: required?,
        upstreams: upstreams?,
    };
    require_upstream(report, fields, &route).then_some(route)
}

/// Whether a route that reads the body has an upstream; reports it if not. Only the proxy has the
/// body of a request.
fn require_upstream(report: &mut Report, fields: &TableFields<'_>, route: &Route) -> bool {
    let reads_body = route.reads_body() || route.reads_body_length();
    if reads_body && route.upstreams.is_empty() {
        let message = "the route reads the body of requests, which only the reverse proxy has";
        let fix = "add upstream = \"http://127.0.0.1:9000\", or read another part";
        report.error("body-without-upstream", fields.location, message, fix);
        return false;
    }
    true
}

fn required_parts(report: &mut Report, node: Node<'_>) -> Option<Vec<RequiredPart>> {
    let wanted = "a table such as { \"body:stream\" = \"body:stream_options.include_usage\" }";
    let entries = node.entries(report, wanted)?;
    if entries.len() > REQUIRED_MAX {
        let message = format!("{} parts are required", entries.len());
        report.error("bad-pick", node.location, message, format!("require 1 to {REQUIRED_MAX}"));
        return None;
    }
    let read: Vec<_> = entries
        .into_iter()
        .map(|(key, node)| {
            let at_key = Node { location: key.location, ..node };
            let when = route_source::read_text(report, at_key, key.text);
            let part = route_source::read(report, node);
            Some(RequiredPart { when: when?, part: part? })
        })
        .collect();
    read.into_iter().collect()
}

fn set(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<Vec<(Name, AttributeSource)>> {
    let entries = node.entries(report, "a table such as { tenant = \"header:x-tenant-id\" }")?;
    let read: Vec<_> = entries
        .into_iter()
        .map(|(key, node)| {
            let is_settable = is_settable(report, key, attributes);
            let sources = route_source::read_alternatives(report, node)?;
            let named = sources.into_iter().map(|source| (Name::from(key.text), source));
            is_settable.then(|| named.collect::<Vec<_>>())
        })
        .collect();
    let read: Option<Vec<Vec<_>>> = read.into_iter().collect();
    read.map(|read| read.into_iter().flatten().collect())
}

/// Whether a route may set this attribute; reports it if not.
fn is_settable(report: &mut Report, key: LocatedKey<'_>, attributes: &AttributeTable) -> bool {
    if key.text == "ip" {
        let message = "`ip` comes only from the connection and from trusted proxies";
        let fix = "remove it, and name your proxies in [network] trusted_proxies";
        report.error("route-sets-address", key.location, message, fix);
        return false;
    }
    if let Some(source) = attributes.facts.source(key.text) {
        let message = format!("`{}` comes from `{source}` already", key.text);
        let fix = "a name has one source: set another attribute";
        report.error("two-sources", key.location, message, fix);
        return false;
    }
    names::check_key(report, key, "attribute")
}

/// Whether every request that matches `later` also matches `earlier`.
fn covers(earlier: &Route, later: &Route) -> bool {
    let method = earlier.method.is_none() || earlier.method == later.method;
    method && route_pattern::covers_path(&earlier.path, &later.path)
}
