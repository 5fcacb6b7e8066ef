//! The startup banner: address, policies, gates, routes, stored state, and a command to try.
//!
//! The command must end in a denial as it is printed, so it depends on the limits and their keys,
//! on TLS and API keys. If no policy can show that with a few calls, there is no command.

use std::fmt::Write;

use catraca::Catalog;
use catraca::core::limit::Limit;
use catraca::core::policy::{KeyPart, KeySpec, Mode, Policy};
use catraca::core::time::Span;
use catraca::explain::describe_block;

/// The most policies, gates and routes that are listed each.
const LISTED_MAX: usize = 12;
/// The most calls that the command makes before the one that is denied.
const CALLS_MAX: i64 = 20;
/// A unit must count at least this long, so that it still does when the last call is made.
const UNIT_MIN: Span = Span::from_secs(5);
/// Added to the command when callers need an API key.
const KEY: &str = " -H 'Authorization: Bearer KEY'";
/// Added with TLS: the certificate is for a host name, and the banner shows the address.
const SKIP_VERIFICATION: &str = " -k";

/// Where a server listens.
pub struct Addresses {
    /// The URL of the HTTP API.
    pub url: String,
    /// The URL of the reverse proxy, if there is one.
    pub proxy: Option<String>,
}

/// What operators changed at run time, which outlasts a restart.
#[derive(Clone, Copy)]
pub struct RunTimeState<'a> {
    /// What the stores and the records have, in one line.
    pub description: &'a str,
    /// The mode that an operator set for a policy, if any.
    pub mode_override: &'a dyn Fn(&str) -> Option<Mode>,
    /// Whether a gate admits an address of this machine now, and no list decides about it.
    pub admits_by_limit: &'a dyn Fn(&str) -> bool,
}

/// The banner for a server with this catalog.
pub fn greeting(
    catalog: &Catalog,
    name: &str,
    state: RunTimeState<'_>,
    addresses: &Addresses,
    needs_key: bool,
    is_demo: bool,
) -> String {
    // Writing to a string cannot fail, so results of `writeln!` are ignored.
    let url = &addresses.url;
    let mut text = format!("Catraca {} listens on {url}\n", env!("CARGO_PKG_VERSION"));
    if let Some(proxy) = &addresses.proxy {
        let _ = writeln!(text, "It proxies the requests of {proxy} to the upstreams of routes");
    }
    let _ = writeln!(text, "\nIt serves {name}, revision {}:", catalog.revision);
    let policies =
        catalog.policies.iter().map(|policy| (policy.name.to_string(), describe(policy, state)));
    list(&mut text, "policy", policies);
    let policy_names = |gate: &catraca::core::catalog::Gate| {
        let names = gate.policies.iter().map(|id| &*catalog.policy(*id).name);
        names.collect::<Vec<_>>().join(", ")
    };
    let gates = catalog.gate_names.iter().filter_map(|gate| catalog.gates.get(gate));
    list(&mut text, "gate", gates.map(|gate| (gate.name.to_string(), policy_names(gate))));
    let routes =
        catalog.routes.iter().map(|route| (route.pattern(), format!("gate {}", route.gate)));
    list(&mut text, "route", routes);
    let _ = writeln!(text, "{}", state.description);
    let tls_option = if url.starts_with("https:") { SKIP_VERIFICATION } else { "" };
    let key_option = if needs_key { KEY } else { "" };
    let options = format!("{tls_option}{key_option}");
    if let Some(command) = example_command(catalog, state, url, &options) {
        let _ = writeln!(text, "\n{command}");
    }
    let own_catalog = match is_demo {
        true => " `catraca serve -c FILE` serves your own catalog.",
        false => "",
    };
    text + "\nCtrl-C stops it." + own_catalog + "\n"
}

/// Lists names with their descriptions, as `catraca config show` does. Says how many are left out.
fn list(text: &mut String, kind: &str, rows: impl Iterator<Item = (String, String)>) {
    let rows: Vec<(String, String)> = rows.collect();
    let listed = &rows[..rows.len().min(LISTED_MAX)];
    let width = listed.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, description) in listed {
        let _ = writeln!(text, "  {kind:<6}  {name:<width$}  {description}");
    }
    if rows.len() > listed.len() {
        let _ = writeln!(text, "  {kind:<6}  and {} more", rows.len() - listed.len());
    }
}

/// A command that calls a gate until it denies.
fn example_command(
    catalog: &Catalog,
    state: RunTimeState<'_>,
    url: &str,
    options: &str,
) -> Option<String> {
    let (name, calls) = catalog.policies.iter().find_map(|policy| {
        let calls = calls_to_denial(policy, (state.mode_override)(&policy.name))?;
        (state.admits_by_limit)(&policy.name).then_some((&policy.name, calls))
    })?;
    let path = format!("{url}/v1/gates/{name}/authorize");
    Some(format!(
        "Try it, the last call is denied:\n  for n in $(seq {calls}); do curl -s -o /dev/null -w \
         '%{{http_code}}\\n'{options} '{path}'; done\n  curl -i{options} '{path}'"
    ))
}

/// How many calls from one address exhaust a policy, if a few do.
fn calls_to_denial(policy: &Policy, mode_override: Option<Mode>) -> Option<i64> {
    let by_address = match &policy.key_spec {
        KeySpec::By(parts) => parts.iter().all(|part| part.iter().any(|name| &**name == "ip")),
        KeySpec::Each(names) => names.iter().any(|name| &**name == "ip"),
    };
    let terms = policy.base.as_ref().filter(|_| policy.tiers.is_empty())?;
    let is_plain = mode_override.unwrap_or(policy.mode) == Mode::Enforce && by_address;
    let counts_long = match &terms.limit {
        Limit::Bucket(bucket) => Span::from_micros(bucket.period / bucket.tokens) >= UNIT_MIN,
        Limit::Window(windows) => windows.iter().all(|window| window.span >= UNIT_MIN),
        // A fixed window may end between two calls, and a lease is returned by no settle.
        _ => false,
    };
    let calls = terms.limit.capacity()?;
    (is_plain && counts_long && calls <= CALLS_MAX && terms.cost.units_to_hold(None, 1) == 1)
        .then_some(calls)
}

fn describe(policy: &Policy, state: RunTimeState<'_>) -> String {
    let limit = policy.base.as_ref().map(|terms| terms.describe_limit());
    let limit = limit.unwrap_or_else(|| "by tier".to_owned());
    let block = policy.base.as_ref().and_then(|terms| terms.block);
    let block = block.map(|block| format!(", block {}", describe_block(block))).unwrap_or_default();
    let mode = match (state.mode_override)(&policy.name) {
        Some(mode) => format!(", mode {}, overridden", mode.as_str()),
        None if policy.mode == Mode::Enforce => String::new(),
        None => format!(", mode {}", policy.mode.as_str()),
    };
    format!("{limit}{block}, by {}{mode}", describe_key(&policy.key_spec))
}

fn describe_key(key: &KeySpec) -> String {
    match key {
        KeySpec::By(parts) if parts.is_empty() => "all callers together".to_owned(),
        KeySpec::By(parts) => {
            let part = |part: &KeyPart| part.join(" or ");
            parts.iter().map(part).collect::<Vec<_>>().join(" and ")
        }
        KeySpec::Each(names) => format!("each of {}", names.join(", ")),
    }
}
