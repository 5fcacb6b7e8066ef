//! The catalog, read-only, and the kill switch: a policy's mode, overridden at once.
//!
//! Must not show a secret: sections of the process are named, never shown.

use catraca::core::catalog::Catalog;
use catraca::core::policy::{Mode, Policy, Who};
use catraca::explain::{limit, penalty};
use catraca::records::Deed;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answered, Call, Desk, Problem, bounded, missing};

/// Two overrides of one policy must be recorded in the order in which they came in force.
static TURN: Mutex<()> = Mutex::new(());

/// `GET /v1/policies`.
pub fn all(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let policies: Vec<Value> =
        catalog.policies.iter().map(|policy| shown(desk, &catalog, policy)).collect();
    Ok(json!({ "revision": &*catalog.revision, "policies": policies }))
}

/// `GET /v1/policies/{name}`.
pub fn one(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let mut shown = shown(desk, &catalog, find(&catalog, call.part(0))?);
    shown["revision"] = (*catalog.revision).into();
    Ok(shown)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    /// Null gives the policy back to the catalog, and must be written out.
    #[serde(deserialize_with = "Option::deserialize")]
    mode: Option<String>,
    why: Option<String>,
}

/// `PUT /v1/policies/{name}/mode`.
pub fn mode(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
    let why = bounded("why", wire.why.as_deref())?;
    let wanted = wire.mode.as_deref().map(read_mode).transpose()?;
    let catalog = desk.engine.catalog();
    let policy = find(&catalog, call.part(0))?;
    desk.records()?;
    let _turn = TURN.lock();
    let before = in_force(desk, policy);
    desk.engine.set_mode(&policy.name, wanted)?;
    let durable = desk.recorded(why, vec![Deed::Mode(policy.name.to_string(), wanted)])?;
    Ok(json!({
        "policy": &*policy.name,
        "before": before,
        "after": in_force(desk, policy),
        "overridden": wanted.is_some(),
        "durable": durable,
    }))
}

/// `GET /v1/config`.
pub fn config(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let name = |id| &*catalog.policy(id).name;
    let gates = catalog.gate_names.iter().filter_map(|gate| catalog.gates.get(gate));
    let gates: Vec<Value> = gates
        .map(|gate| {
            let policies: Vec<&str> = gate.policies.iter().map(|id| name(*id)).collect();
            json!({ "gate": &*gate.name, "policies": policies })
        })
        .collect();
    let attributes = catalog.attributes.iter();
    let attributes: Vec<Value> = attributes
        .map(|(name, known)| json!({ "attribute": &**name, "private": known.private }))
        .collect();
    let routes = catalog.routes.iter().map(|route| {
        let method = route.method.as_deref().unwrap_or("*");
        json!({ "match": format!("{method} /{}", route.path.join("/")), "gate": &*route.gate })
    });
    Ok(json!({
        "revision": &*catalog.revision,
        "default": catalog.default.map(name),
        "policies": catalog.policies.len(),
        "gates": gates,
        "attributes": attributes,
        "routes": routes.collect::<Vec<_>>(),
        "allowlist": catalog.allowlist.len(),
        "blocklist": catalog.blocklist.len(),
        "sections": catalog.settings.sections.keys().collect::<Vec<_>>(),
        "unlisted": desk.engine.unlisted(),
    }))
}

fn shown(desk: &Desk<'_>, catalog: &Catalog, policy: &Policy) -> Value {
    let (who, names) = match &policy.who {
        Who::By(parts) => ("by", parts.iter().map(|part| part.join("|")).collect::<Vec<_>>()),
        Who::Each(names) => ("each", names.iter().map(|name| name.to_string()).collect()),
    };
    let terms = policy.base.as_ref();
    json!({
        "policy": &*policy.name,
        "group": policy.group.as_deref(),
        who: names,
        "limit": terms.map(|terms| limit(&terms.limit)),
        "block": terms.and_then(|terms| terms.block).map(penalty),
        "tiers": policy.tiers.len(),
        "bans": policy.bans.len(),
        "debt": policy.debt,
        "otherwise": policy.otherwise.map(|id| &*catalog.policy(id).name),
        "mode": in_force(desk, policy),
        "overridden": desk.engine.overridden(&policy.name).is_some(),
    })
}

fn in_force(desk: &Desk<'_>, policy: &Policy) -> &'static str {
    desk.engine.overridden(&policy.name).unwrap_or(policy.mode).as_str()
}

fn find<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Policy, Problem> {
    let found = catalog.find(name).map(|(_, policy)| policy);
    found.ok_or_else(|| missing("unknown-policy", format!("no policy is called `{name}`")))
}

fn read_mode(word: &str) -> Result<Mode, Problem> {
    let all = [Mode::Enforce, Mode::Shadow, Mode::Off];
    let detail = "`mode` is one of enforce, shadow and off, or null for the catalog's own";
    let found = all.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| Problem::bad("bad-mode", detail))
}
