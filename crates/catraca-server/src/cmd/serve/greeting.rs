//! The first thing a person reads: where it listens, what it protects, and something to paste.
//!
//! Must not show a command that cannot work.

use std::fmt::Write;

use catraca::core::policy::{Name, Part, Policy, Who};
use catraca::{Catalog, explain};

/// What a caller adds when there are keys.
const KEY: &str = " -H 'Authorization: Bearer KEY'";
/// What a trial adds when there is TLS: a certificate is for a name, and seldom for this address.
const UNNAMED: &str = " -k";

/// The greeting of a server of this catalog.
pub fn greeting(
    catalog: &Catalog,
    name: &str,
    found: &str,
    (address, keyed): (&str, bool),
) -> String {
    let mut text = format!("Catraca {} listens on {address}\n", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "\nIt serves {name}, revision {}:", catalog.revision);
    for policy in &catalog.policies {
        let _ = writeln!(text, "  {:<12} {}", policy.name, in_words(policy));
    }
    let _ = writeln!(text, "{found}");
    let unnamed = if address.starts_with("https:") { UNNAMED } else { "" };
    let more = format!("{unnamed}{}", if keyed { KEY } else { "" });
    if let Some(paste) = paste(catalog, address, &more) {
        let _ = writeln!(text, "\n{paste}");
    }
    text + "\nCtrl-C stops it. `catraca serve --config FILE` serves your own catalog.\n"
}

/// A question that the first policy can answer.
fn paste(catalog: &Catalog, address: &str, more: &str) -> Option<String> {
    let policy = catalog.policies.first()?;
    let by_address = |who: &Who| match who {
        Who::By(parts) => parts.iter().all(|part| part.iter().any(|name| &**name == "ip")),
        Who::Each(names) => names.iter().any(|name| &**name == "ip"),
    };
    let name = &policy.name;
    if by_address(&policy.who) {
        return Some(format!(
            "Try it, six times:\n  curl -i{more} '{address}/v1/gates/{name}/authorize'"
        ));
    }
    let known = match &policy.who {
        Who::By(parts) => parts.iter().filter_map(|part| part.first()).collect::<Vec<_>>(),
        Who::Each(names) => names.iter().take(1).collect(),
    };
    let example = |name: &&Name| if ***name == *"ip" { "198.51.100.7" } else { "..." };
    let known = known.iter().map(|name| format!("\"{name}\":\"{}\"", example(name)));
    let known: Vec<String> = known.collect();
    Some(format!(
        "Try it, with a caller of yours:\n  curl {address}/v1/check{more} -H 'Content-Type: \
         application/json' \\\n    -d '{{\"gate\":\"{name}\",\"subject\":{{{}}}}}'",
        known.join(",")
    ))
}

fn in_words(policy: &Policy) -> String {
    let limit = policy.base.as_ref().map(|terms| explain::limit(&terms.limit));
    let limit = limit.unwrap_or_else(|| "by tier".to_owned());
    format!("{limit}, by {}", who(&policy.who))
}

fn who(who: &Who) -> String {
    match who {
        Who::By(parts) if parts.is_empty() => "everybody together".to_owned(),
        Who::By(parts) => {
            let part = |part: &Part| part.join(" or ");
            parts.iter().map(part).collect::<Vec<_>>().join(" and ")
        }
        Who::Each(names) => format!("each of {}", names.join(", ")),
    }
}
