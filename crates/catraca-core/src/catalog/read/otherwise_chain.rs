//! `otherwise`: links each policy to its fallback, and reports chains that are too long or cyclic.
//!
//! `select` follows these chains for every request, so they must be short and end.

use std::collections::BTreeMap;

use super::policy::PolicyDraft;
use crate::located::{Report, SourceLocation, names};
use crate::policy::PolicyId;
use crate::select::CHAIN_MAX;

/// The index of each policy, by name.
pub(super) type PolicyIds<'t> = BTreeMap<&'t str, PolicyId>;

/// Sets the fallback of each policy.
pub(super) fn link<'t>(report: &mut Report, drafts: &mut [PolicyDraft<'t>], ids: &PolicyIds<'t>) {
    let next: Vec<Option<PolicyId>> = drafts
        .iter()
        .map(|draft| draft.otherwise.and_then(|(_, name)| ids.get(name).copied()))
        .collect();
    for (at, draft) in drafts.iter_mut().enumerate() {
        let Some((location, name)) = draft.otherwise else { continue };
        if next[at].is_none() {
            report_unknown_policy(report, location, name, ids);
        }
        let steps = steps(&next, at);
        if steps.is_none() {
            let message = format!("`{}` falls back to itself through `{name}`", draft.key.text);
            report.error("otherwise-cycle", location, message, "name a policy outside the cycle");
        }
        if steps.is_some_and(|steps| steps > CHAIN_MAX) {
            let message = format!("the chain that starts with `{name}` is too long");
            let fix = format!("a policy falls back at most {CHAIN_MAX} times");
            report.error("otherwise-too-long", location, message, fix);
        }
        if let Some(policy) = &mut draft.policy {
            policy.otherwise = next[at];
        }
    }
}

/// Reports the name of a policy that does not exist.
pub(super) fn report_unknown_policy(
    report: &mut Report,
    location: SourceLocation,
    name: &str,
    ids: &PolicyIds<'_>,
) {
    let known: Vec<&str> = ids.keys().copied().collect();
    let message = format!("no policy is named `{}`", name.escape_debug());
    report.error("unknown-policy", location, message, names::suggest(report, name, &known));
}

/// The length of the chain that starts at a policy; `None` if it returns to that policy.
fn steps(next: &[Option<PolicyId>], start: usize) -> Option<usize> {
    let mut at = start;
    let mut steps = 0;
    while let Some(id) = next[at] {
        at = usize::from(id.0);
        steps += 1;
        if at == start {
            return None;
        }
        if steps > next.len() {
            // The chain leads into a cycle that does not contain `start`. The policies of the
            // cycle are reported, so this one need not be.
            return Some(0);
        }
    }
    Some(steps)
}
