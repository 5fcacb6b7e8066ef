//! The startup banner: address, policies, stored state, and a `curl` command to try.
//!
//! The command must work as it is printed, so it depends on the key attributes, TLS and API keys.

use std::fmt::Write;

use catraca::Catalog;
use catraca::core::policy::{KeyPart, KeySpec, Name, Policy};

/// Added to the command when callers need an API key.
const KEY: &str = " -H 'Authorization: Bearer KEY'";
/// Added with TLS: the certificate is for a host name, and the banner shows the address.
const SKIP_VERIFICATION: &str = " -k";

/// The banner for a server with this catalog.
pub fn greeting(
    catalog: &Catalog,
    name: &str,
    state: &str,
    url: &str,
    needs_key: bool,
    is_demo: bool,
) -> String {
    // Writing to a string cannot fail, so results of `writeln!` are ignored.
    let mut text = format!("Catraca {} listens on {url}\n", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "\nIt serves {name}, revision {}:", catalog.revision);
    for policy in &catalog.policies {
        let _ = writeln!(text, "  {:<12} {}", policy.name, describe(policy));
    }
    let _ = writeln!(text, "{state}");
    let tls_option = if url.starts_with("https:") { SKIP_VERIFICATION } else { "" };
    let key_option = if needs_key { KEY } else { "" };
    let options = format!("{tls_option}{key_option}");
    if let Some(command) = example_command(catalog, url, &options) {
        let _ = writeln!(text, "\n{command}");
    }
    let own_catalog = match is_demo {
        true => " `catraca serve -c FILE` serves your own catalog.",
        false => "",
    };
    text + "\nCtrl-C stops it." + own_catalog + "\n"
}

/// A command that calls the gate of the first policy.
fn example_command(catalog: &Catalog, url: &str, options: &str) -> Option<String> {
    let policy = catalog.policies.first()?;
    let by_address = |who: &KeySpec| match who {
        KeySpec::By(parts) => parts.iter().all(|part| part.iter().any(|name| &**name == "ip")),
        KeySpec::Each(names) => names.iter().any(|name| &**name == "ip"),
    };
    let name = &policy.name;
    if by_address(&policy.key_spec) {
        return Some(format!("Try it:\n  curl -i{options} '{url}/v1/gates/{name}/authorize'"));
    }
    let attributes = match &policy.key_spec {
        KeySpec::By(parts) => parts.iter().filter_map(|part| part.first()).collect::<Vec<_>>(),
        KeySpec::Each(names) => names.iter().take(1).collect(),
    };
    let example = |name: &&Name| if ***name == *"ip" { "198.51.100.7" } else { "..." };
    let attributes = attributes.iter().map(|name| format!("\"{name}\":\"{}\"", example(name)));
    let attributes: Vec<String> = attributes.collect();
    Some(format!(
        "Try it, with a caller of yours:\n  curl {url}/v1/check{options} -H 'Content-Type: \
         application/json' \\\n    -d '{{\"gate\":\"{name}\",\"subject\":{{{}}}}}'",
        attributes.join(",")
    ))
}

fn describe(policy: &Policy) -> String {
    let limit = policy.base.as_ref().map(|terms| terms.limit.describe());
    let limit = limit.unwrap_or_else(|| "by tier".to_owned());
    format!("{limit}, by {}", describe_key(&policy.key_spec))
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
