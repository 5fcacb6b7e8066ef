//! `[store] shard_by`: refuses policies whose keys could not be beside the others of a gate.
//!
//! A gate is decided in one step on one server, and every policy is a gate. A key without a value
//! to be spread by would be somewhere else. Must not spread anything.

use super::gate::Gates;
use super::policy::Draft;
use super::report::Report;
use crate::catalog::Settings;
use crate::policy::{Name, PolicyId};
use crate::spread::Spread;

/// Reports every policy that does not key by what the store spreads by.
pub(super) fn judge(report: &mut Report, drafts: &[Draft<'_>], gates: &Gates, settings: &Settings) {
    let store = settings.sections.get("store");
    let Some(attribute) = store.and_then(|store| store.get("shard_by")?.as_str()) else { return };
    let spread = Spread::Attribute(attribute.into());
    for (id, draft) in (0_u16..).map(PolicyId).zip(drafts) {
        let Some(policy) = draft.policy.as_ref().filter(|policy| !spread.has_all_of(policy)) else {
            continue;
        };
        let gate = gate_of(gates, id).map(|gate| format!(" in the gate `{gate}`"));
        let message = format!(
            "`{}` does not always key by `{attribute}`, by which [store] shard_by spreads: its \
             keys could not share a slot with others{}",
            policy.name,
            gate.unwrap_or_default()
        );
        let fix = format!(
            "add \"{attribute}\" to its `by`, alone and without `|`, or remove shard_by: a \
             cluster then spreads by namespace"
        );
        report.error("not-sharded", draft.key.place, message, fix);
    }
}

/// The first declared gate that a policy is in with others.
fn gate_of(gates: &Gates, id: PolicyId) -> Option<&Name> {
    gates.declared.iter().find(|name| {
        gates
            .all
            .get(*name)
            .is_some_and(|gate| gate.policies.len() > 1 && gate.policies.contains(&id))
    })
}
