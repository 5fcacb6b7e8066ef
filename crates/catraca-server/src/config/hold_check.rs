//! Warns of a `hold` that ends before the response of a slow upstream may begin: the proxy ends
//! such a request early, so that its settle is applied.

use std::time::Duration;

use catraca::core::catalog::read::{HOLD_DEFAULT, HOLD_DEFAULT_WITHOUT_LIMIT, Sections};
use catraca::core::limit::Limit;
use catraca::core::located::{Node, Report};
use catraca::core::time::{Span, parse_span};

use super::ProxySection;

/// Reports the policies of proxied routes whose `hold` is shorter than `first_byte_timeout`.
pub fn check(report: &mut Report, proxy: &ProxySection, sections: &Sections<'_>) {
    let limit = proxy.first_byte_timeout;
    for (name, policy) in proxied_policies(sections) {
        if !is_settled_later(policy) {
            continue;
        }
        let stated = field(policy, "hold");
        let hold = stated.map_or_else(|| Some(default_hold(policy)), span);
        if hold.is_some_and(|hold| Duration::from(hold) < limit) {
            let message = format!(
                "`{name}` is settled with the response of an upstream, which may begin after \
                 {limit:?} ([proxy] first_byte_timeout): a request whose response has not begun \
                 after nine tenths of `hold` ends with 408 or 504"
            );
            let fix = "write a `hold` longer than the longest response, or a shorter \
                       first_byte_timeout";
            let location = stated.map_or(policy.location, |hold| hold.location);
            report.warn("short-hold", location, message, fix);
        }
    }
}

fn span(node: Node<'_>) -> Option<Span> {
    parse_span(node.value.as_str()?).ok()
}

/// The default, or a longer one: a policy that bans may have a limit or none.
fn default_hold(policy: Node<'_>) -> Span {
    if holds_units(policy) { HOLD_DEFAULT } else { HOLD_DEFAULT_WITHOUT_LIMIT }
}

/// Whether a settle changes what the check has charged, or starts a block.
fn is_settled_later(policy: Node<'_>) -> bool {
    holds_units(policy) || ["ban", "watch"].iter().any(|name| field(policy, name).is_some())
}

/// Whether the check charges units or takes a lease, and the settle corrects or returns it.
fn holds_units(policy: Node<'_>) -> bool {
    let cost = field(policy, "cost");
    let is_priced = cost.is_some_and(|cost| cost.value.as_integer().is_none());
    is_priced || Limit::lease_fields().any(|name| field(policy, name).is_some())
}

/// The policies of all routes that have an upstream.
fn proxied_policies<'t>(sections: &Sections<'t>) -> Vec<(&'t str, Node<'t>)> {
    let routes = sections.all("route").iter().filter_map(|(_, node)| node.as_items()).flatten();
    let routes = routes.filter(|route| field(*route, "upstream").is_some());
    let gates: Vec<&str> =
        routes.filter_map(|route| field(route, "gate")).flat_map(gate_names).collect();
    let declared = named_tables(sections, "gate");
    let listed = declared.into_iter().filter(|(name, _)| gates.contains(name));
    let listed = listed.filter_map(|(_, gate)| field(gate, "policies")?.as_items()).flatten();
    let listed: Vec<&str> = listed.filter_map(|policy| policy.value.as_str()).collect();
    let policies = named_tables(sections, "policy").into_iter();
    policies.filter(|(name, _)| gates.contains(name) || listed.contains(name)).collect()
}

/// The gates of a route: one, or those of a map with its defaults.
fn gate_names(gate: Node<'_>) -> Vec<&str> {
    if let Some(name) = gate.value.as_str() {
        return vec![name];
    }
    let mapped = field(gate, "map").and_then(|map| map.as_entries()).unwrap_or_default();
    let others = [field(gate, "absent"), field(gate, "default")].into_iter().flatten();
    let all = mapped.into_iter().map(|(_, node)| node).chain(others);
    all.filter_map(|node| node.value.as_str()).collect()
}

fn named_tables<'t>(sections: &Sections<'t>, name: &str) -> Vec<(&'t str, Node<'t>)> {
    let tables = sections.all(name).iter().filter_map(|(_, node)| node.as_entries()).flatten();
    tables.map(|(key, node)| (key.text, node)).collect()
}

fn field<'t>(table: Node<'t>, name: &str) -> Option<Node<'t>> {
    let mut entries = table.as_entries()?.into_iter();
    entries.find(|(key, _)| key.text == name).map(|(_, node)| node)
}

#[cfg(test)]
mod tests {
    use crate::config;

    fn warnings(more: &str) -> usize {
        let text = format!(
            "[policy.chat]\nby = ['ip']\nbucket = {{ size = 9, refill = '1 per 1m' }}\n\
             cost = {{ '200' = 2, default = 1 }}\nhold = '30s'\n\
             [policy.site]\nby = ['ip']\nwindow = '9 per 1m'\nhold = '1s'\n\
             [policy.banned]\nby = ['ip']\nwindow = '9 per 1m'\nhold = '30s'\n\
             ban = [{{ when = 'status == 401', for = '1m' }}]\n\
             [policy.parallel]\nby = ['ip']\ninflight = 9\n\
             [policy.strikes]\nby = ['ip']\n\
             ban = [{{ when = 'status == 401', for = '1m' }}]\n\
             [gate.both]\npolicies = ['site', 'chat']\n{more}"
        );
        let read = config::parse(&text).unwrap();
        read.warnings.iter().filter(|warning| warning.code == "short-hold").count()
    }

    #[test]
    fn a_hold_that_ends_before_the_response_begins_is_reported() {
        let route =
            |gate: &str| format!("[[route]]\nmatch = '/**'\nupstream = 'http://a'\n{gate}\n");
        let map = "gate = { by = 'k', map = { a = 'chat' }, default = 'site' }\n\
                   set = { k = 'header:k' }";
        for (more, count) in [
            (route("gate = 'chat'"), 1),
            (route("gate = 'both'"), 1),
            (route(map), 1),
            (route("gate = 'site'"), 0),
            ("[[route]]\nmatch = '/**'\ngate = 'chat'\n".to_owned(), 0),
            (route("gate = 'chat'") + "[proxy]\nfirst_byte_timeout = '30s'\n", 0),
            (route("gate = 'banned'"), 1),
            // The defaults are no reason for a warning, but a longer timeout than they are is.
            (route("gate = 'parallel'"), 0),
            (route("gate = 'parallel'") + "[proxy]\nfirst_byte_timeout = '2m'\n", 1),
            (route("gate = 'strikes'") + "[proxy]\nfirst_byte_timeout = '2m'\n", 0),
            (route("gate = 'strikes'") + "[proxy]\nfirst_byte_timeout = '11m'\n", 1),
        ] {
            assert_eq!(warnings(&more), count, "{more}");
        }
    }
}
