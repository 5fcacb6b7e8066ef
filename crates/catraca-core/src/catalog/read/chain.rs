//! `otherwise`: follows the chains of policies once all are known.
//!
//! Must not choose: selecting walks a chain at run time, and needs it short and without a loop.

use std::collections::BTreeMap;

use super::names;
use super::policy::Draft;
use super::report::Report;
use crate::policy::PolicyId;
use crate::select::CHAIN_MAX;

/// Where each policy stands, by name.
pub(super) type Ids<'t> = BTreeMap<&'t str, PolicyId>;

/// Gives each policy the one it falls back to.
pub(super) fn link<'t>(report: &mut Report, drafts: &mut [Draft<'t>], ids: &Ids<'t>) {
    let next: Vec<Option<PolicyId>> = drafts
        .iter()
        .map(|draft| draft.otherwise.and_then(|(_, name)| ids.get(name).copied()))
        .collect();
    for (at, draft) in drafts.iter_mut().enumerate() {
        let Some((place, name)) = draft.otherwise else { continue };
        if next[at].is_none() {
            unknown(report, place, name, ids);
        }
        let steps = steps(&next, at);
        if steps.is_none() {
            let message = format!("`{}` falls back to itself through `{name}`", draft.key.text);
            report.error("otherwise-cycle", place, message, "name a policy outside the circle");
        }
        if steps.is_some_and(|steps| steps > CHAIN_MAX) {
            let message = format!("the chain that starts with `{name}` is too long");
            let fix = format!("a policy falls back at most {CHAIN_MAX} times");
            report.error("otherwise-too-long", place, message, fix);
        }
        if let Some(policy) = &mut draft.policy {
            policy.otherwise = next[at];
        }
    }
}

/// Reports a policy that nobody declared.
pub(super) fn unknown(report: &mut Report, place: super::report::Place, name: &str, ids: &Ids<'_>) {
    let known: Vec<&str> = ids.keys().copied().collect();
    let message = format!("no policy is named `{}`", name.escape_debug());
    report.error("unknown-policy", place, message, names::suggest(report, name, &known));
}

/// How often a policy falls back; nothing if it comes back to where it started.
fn steps(next: &[Option<PolicyId>], start: usize) -> Option<usize> {
    let (mut at, mut steps) = (start, 0);
    while let Some(id) = next[at] {
        at = usize::from(id.0);
        steps += 1;
        if at == start {
            return None;
        }
        if steps > next.len() {
            // It leads into a circle that it is not part of; those inside it are reported.
            return Some(0);
        }
    }
    Some(steps)
}
