//! `[[route]]`: the gate, attributes and upstream of HTTP requests by method and path.
//!
//! Routes are tried in the order of the text, and the first that matches wins.

use super::attribute::AttributeTable;
use super::bounds::{ROUTES_MAX, SEGMENTS_MAX};
use super::gate::Gates;
use super::route_pattern;
use super::schema;
use super::section::Sections;
use crate::catalog::{AttributeSource, PathCase, Route};
use crate::located::{
    FieldSchema, LocatedKey, Node, Report, TableFields, TableSchema, ValueSchema, names,
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
        FieldSchema::new("gate", schema::NAME, "the gate or policy").require(),
        FieldSchema::new(
            "set",
            ValueSchema::Map(&SOURCE),
            "attributes from the request: `header:NAME`, `query:NAME`, `path:N` (the N-th segment, \
             from one), `const:TEXT`. Never `ip`",
        ),
        FieldSchema::new(
            "upstream",
            ValueSchema::Url(&["http", "https"]),
            "the target of a reverse proxy; validated, but not used by this version",
        ),
    ],
};

const SOURCE: ValueSchema =
    ValueSchema::Pattern { pattern: "^(header|query|path|const):", words: "a part of the request" };

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
    let gate = fields.require(report, "gate", "\"orders\"");
    let gate = gate.and_then(|node| gate_name(report, node, gates));
    let set = fields.parse("set", |node| set(report, node, attributes)).or(Vec::new());
    let upstream = fields.parse("upstream", |node| upstream(report, node)).optional();
    let (method, path) = pattern?;
    Some(Route { method, path, gate: gate?, set: set?, upstream: upstream? })
}

fn gate_name(report: &mut Report, node: Node<'_>, gates: &Gates) -> Option<Name> {
    let name = node.text(report, "the name of a gate")?;
    let found = gates.all.get_key_value(name).map(|(name, _)| name.clone());
    if found.is_none() {
        let known: Vec<&str> = gates.names.iter().map(|name| &**name).collect();
        let message = format!("no gate or policy is named `{}`", name.escape_debug());
        report.error("unknown-gate", node.location, message, names::suggest(report, name, &known));
    }
    found
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
            let source = attribute_source(report, node);
            is_settable.then(|| Some((key.text.into(), source?)))?
        })
        .collect();
    read.into_iter().collect()
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

fn attribute_source(report: &mut Report, node: Node<'_>) -> Option<AttributeSource> {
    let wanted = "\"header:…\", \"query:…\", \"path:2\" or \"const:…\"";
    let text = node.text(report, wanted)?;
    let found = text.split_once(':').and_then(|(from, name)| parse_source(from, name));
    if found.is_none() {
        let message = format!("`{}` is not a part of a request", text.escape_debug());
        report.error("bad-pick", node.location, message, format!("write {wanted}"));
    }
    found
}

fn parse_source(from: &str, name: &str) -> Option<AttributeSource> {
    let header = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match from {
        _ if name.is_empty() => None,
        "header" if name.chars().all(header) => {
            Some(AttributeSource::Header(name.to_ascii_lowercase()))
        }
        "query" => Some(AttributeSource::Query(name.to_owned())),
        "path" => {
            let segment = name.parse().ok().filter(|segment| (1..=SEGMENTS_MAX).contains(segment));
            segment.map(AttributeSource::Segment)
        }
        "const" => Some(AttributeSource::Literal(name.to_owned())),
        _ => None,
    }
}

fn upstream(report: &mut Report, node: Node<'_>) -> Option<String> {
    let text = node.text(report, "an address such as \"http://127.0.0.1:9000\"")?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let invalid = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '@');
    if host.is_empty() || text.contains(invalid) {
        let message = format!("`{}` is not the address of an HTTP server", text.escape_debug());
        let fix = "write http:// or https://, a host and a port, such as http://127.0.0.1:9000";
        report.error("bad-upstream", node.location, message, fix);
        return None;
    }
    Some(text.to_owned())
}

/// Whether every request that matches `later` also matches `earlier`.
fn covers(earlier: &Route, later: &Route) -> bool {
    let method = earlier.method.is_none() || earlier.method == later.method;
    method && route_pattern::covers_path(&earlier.path, &later.path)
}
