//! `[[route]]`: which gate an HTTP-shaped request passes.
//!
//! The first match in the order of the text wins. Must not match requests: front ends do.

use super::attribute::Known;
use super::bounds::{ROUTES_MAX, SEGMENTS_MAX};
use super::gate::Gates;
use super::names;
use super::node::{Fields, Key, Node};
use super::pattern;
use super::report::Report;
use super::section::Sections;
use crate::catalog::{PathCase, Pick, Route};
use crate::policy::Name;
use crate::route::fold_case;

const FIELDS: [&str; 4] = ["match", "gate", "set", "upstream"];

/// Reads all routes.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    known: &Known,
    gates: &Gates,
    case: PathCase,
) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let items = sections.listed(report, "route");
    if let Some(extra) = items.get(ROUTES_MAX) {
        let message = format!("{} routes are too many", items.len());
        let fix = format!("keep at most {ROUTES_MAX}: join them with * and **");
        report.error("too-many-routes", extra.place, message, fix);
    }
    for item in items.into_iter().take(ROUTES_MAX) {
        let Some(fields) = Fields::item(report, item, "route", &FIELDS) else { continue };
        let Some(mut route) = route(report, &fields, known, gates) else { continue };
        if case == PathCase::Insensitive {
            // Canonical paths are in lower case then, so patterns are too.
            route.path.iter_mut().for_each(|segment| *segment = fold_case(segment));
        }
        let place = fields.get("match").map_or(fields.place, |node| node.place);
        if routes.iter().any(|earlier| covers(earlier, &route)) {
            let message = "an earlier route takes every request of this one";
            let fix = "move this route before it, or remove it";
            report.warn("route-unreachable", place, message, fix);
        }
        routes.push(route);
    }
    routes
}

fn route(report: &mut Report, fields: &Fields<'_>, known: &Known, gates: &Gates) -> Option<Route> {
    let matched = fields.need(report, "match", "\"POST /api/orders/**\"");
    let matched = matched.and_then(|node| pattern::read(report, node));
    let gate = fields.need(report, "gate", "\"orders\"");
    let gate = gate.and_then(|node| gate_of(report, node, gates));
    let set = fields.given("set", |node| set(report, node, known)).or(Vec::new());
    let upstream = fields.given("upstream", |node| upstream(report, node)).optional();
    let (method, path) = matched?;
    Some(Route { method, path, gate: gate?, set: set?, upstream: upstream? })
}

fn gate_of(report: &mut Report, node: Node<'_>, gates: &Gates) -> Option<Name> {
    let name = node.text(report, "the name of a gate")?;
    let found = gates.all.get_key_value(name).map(|(name, _)| name.clone());
    if found.is_none() {
        let known: Vec<&str> = gates.names.iter().map(|name| &**name).collect();
        let message = format!("no gate or policy is named `{}`", name.escape_debug());
        report.error("unknown-gate", node.place, message, names::suggest(report, name, &known));
    }
    found
}

fn set(report: &mut Report, node: Node<'_>, known: &Known) -> Option<Vec<(Name, Pick)>> {
    let entries = node.entries(report, "a table such as { tenant = \"header:x-tenant-id\" }")?;
    let read: Vec<_> = entries
        .into_iter()
        .map(|(key, node)| {
            let settable = settable(report, key, known);
            let pick = pick(report, node);
            settable.then(|| Some((key.text.into(), pick?)))?
        })
        .collect();
    read.into_iter().collect()
}

/// Whether a request may say this of itself.
fn settable(report: &mut Report, key: Key<'_>, known: &Known) -> bool {
    if key.text == "ip" {
        let message = "the address comes from the connection and from trusted proxies alone";
        let fix = "remove it, and name your proxies in [network] trusted_proxies";
        report.error("route-sets-address", key.place, message, fix);
        return false;
    }
    if let Some(source) = known.facts.source(key.text) {
        let message = format!("`{}` comes from `{source}` already", key.text);
        let fix = "a name has one source: set another attribute";
        report.error("two-sources", key.place, message, fix);
        return false;
    }
    names::check(report, key, "attribute")
}

fn pick(report: &mut Report, node: Node<'_>) -> Option<Pick> {
    let wanted = "\"header:…\", \"query:…\", \"path:2\" or \"const:…\"";
    let text = node.text(report, wanted)?;
    let found = text.split_once(':').and_then(|(from, name)| picked(from, name));
    if found.is_none() {
        let message = format!("`{}` names nothing of a request", text.escape_debug());
        report.error("bad-pick", node.place, message, format!("write {wanted}"));
    }
    found
}

fn picked(from: &str, name: &str) -> Option<Pick> {
    let header = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match from {
        _ if name.is_empty() => None,
        "header" if name.chars().all(header) => Some(Pick::Header(name.to_ascii_lowercase())),
        "query" => Some(Pick::Query(name.to_owned())),
        "path" => {
            let segment = name.parse().ok().filter(|segment| (1..=SEGMENTS_MAX).contains(segment));
            segment.map(Pick::Segment)
        }
        "const" => Some(Pick::Literal(name.to_owned())),
        _ => None,
    }
}

fn upstream(report: &mut Report, node: Node<'_>) -> Option<String> {
    let text = node.text(report, "an address such as \"http://127.0.0.1:9000\"")?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '@');
    if host.is_empty() || text.contains(strange) {
        let message =
            format!("`{}` is not where a proxy could send a request", text.escape_debug());
        let fix = "write http:// or https://, a host and a port, such as http://127.0.0.1:9000";
        report.error("bad-upstream", node.place, message, fix);
        return None;
    }
    Some(text.to_owned())
}

/// Whether every request of `later` is one of `earlier`.
fn covers(earlier: &Route, later: &Route) -> bool {
    let method = earlier.method.is_none() || earlier.method == later.method;
    method && pattern::takes_all(&earlier.path, &later.path)
}
