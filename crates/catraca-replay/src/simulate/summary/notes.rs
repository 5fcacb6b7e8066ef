//! Notes of a summary: undeclared gates, warnings of policies, and reached limits.

use catraca::core::route::UNROUTED;

use super::Summary;
use super::subjects::SUBJECTS_MAX;
use crate::text::{count, count_noun};

/// Maximum number of names printed of a list.
const NAMES: usize = 10;

/// All notes on a run.
pub fn notes(summary: &Summary) -> Vec<String> {
    let totals = summary.events.lock();
    let mut notes = Vec::new();
    let unrouted = summary.unlisted.get(UNROUTED).copied().unwrap_or_default();
    if unrouted > 0 {
        let requests = count_noun(unrouted as usize, "request matches", "requests match");
        notes.push(format!("{requests} no route; the default policy decides"));
    }
    let unlisted = summary.unlisted.keys().map(String::as_str);
    let mut unlisted = unlisted.filter(|gate| *gate != UNROUTED).peekable();
    if unlisted.peek().is_some() {
        let gates = names(unlisted);
        notes.push(format!(
            "gates that the catalog does not declare, decided by its default: {gates}"
        ));
    }
    for (policy, times) in &totals.low_water {
        notes.push(format!("{policy} fell below its low-water mark {}", times_of(*times)));
    }
    for (policy, times) in &totals.storms {
        let times = times_of(*times);
        notes.push(format!("{policy} reached its ban storm limit {times}; its bans became shadow"));
    }
    if totals.failed > 0 {
        let failed = count(totals.failed);
        notes.push(format!(
            "{failed} ban conditions read a missing field or compared different types"
        ));
    }
    drop(totals);
    notes.extend(bounds(summary));
    notes.extend(idle(summary));
    notes
}

/// Notes on reached limits.
fn bounds(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.totals.degraded > 0 {
        let degraded = count(summary.totals.degraded);
        notes.push(format!(
            "{degraded} decisions are degraded: memory was full, and keys shared a counter"
        ));
    }
    if summary.subjects.untracked > 0 {
        let max = count(SUBJECTS_MAX as u64);
        let rest = count(summary.subjects.untracked);
        notes.push(format!(
            "only the first {max} denied subjects are ranked; {rest} denials of others are not"
        ));
    }
    notes
}

fn idle(summary: &Summary) -> Option<String> {
    let idle = summary.catalog.policies.iter().zip(&summary.policies);
    let idle = idle.filter(|(_, tally)| tally.allowed + tally.denied == 0);
    let idle: Vec<_> = idle.map(|(policy, _)| &*policy.name).collect();
    let has_idle = !idle.is_empty() && summary.totals.lines > 0;
    has_idle.then(|| format!("never checked: {}", names(idle.into_iter())))
}

fn times_of(times: u64) -> String {
    count_noun(times as usize, "time", "times")
}

/// The first names of a list, and the number of the others.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = all.collect();
    let more = all.len().saturating_sub(NAMES);
    let shown = all[..all.len().min(NAMES)].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(names(["a", "b"].into_iter()), "a, b");
        assert_eq!(names(std::iter::repeat_n("a", 12)), "a, a, a, a, a, a, a, a, a, a and 2 more");
    }
}
