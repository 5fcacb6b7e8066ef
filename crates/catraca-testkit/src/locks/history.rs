//! Checks the history of lock calls that callers observed: no two callers certainly held the same
//! name at the same time.
//!
//! Each grant has a window in which its caller certainly held the lease, for any latency of the
//! messages, and a wider window in which it may have held it. A sweep over the windows finds
//! every overlap of certain windows; a correct history is never reported.

use std::collections::BTreeMap;

/// One acquire as its caller observed it. Instants are of one monotonic clock, in microseconds.
#[derive(Clone, Debug)]
pub struct ObservedCall {
    /// The requested name or calendar.
    pub name: String,
    /// The requested range of a calendar; [`ALL`] for a name.
    pub range: (i64, i64),
    /// When the acquire was sent.
    pub sent: i64,
    /// When its answer arrived, if it did.
    pub answered: Option<i64>,
    /// The answer.
    pub answer: ObservedAnswer,
}

/// The answer of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedAnswer {
    /// A lease.
    Granted {
        /// The fencing token.
        fence: i64,
        /// The time to live in the answer.
        ttl: i64,
        /// When the release was sent, if it was.
        release_sent: Option<i64>,
        /// When the release was answered.
        released: Option<i64>,
    },
    /// Another caller held it.
    Conflict,
    /// No answer, or an error that leaves open whether the lease was granted.
    Unknown {
        /// The time to live of the lease, if it was granted.
        ttl: i64,
    },
}

/// The whole range of a name.
pub const ALL: (i64, i64) = (0, 1);

/// How far the end of a lease may be from its expiry, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockTolerance {
    /// Earlier: the step of the wall clock forward, for stores whose leases use the wall clock.
    pub early: i64,
    /// Later: such as after a restart.
    pub late: i64,
}

/// Describes every violation in a history; empty if it is correct.
pub fn judge(seen: &[ObservedCall], slack: ClockTolerance) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut names: BTreeMap<&str, Vec<&ObservedCall>> = BTreeMap::new();
    for one in seen {
        names.entry(&one.name).or_default().push(one);
    }
    for (name, all) in &names {
        overlaps(name, all, slack.early, &mut wrong);
        conflicts(name, all, slack.late, &mut wrong);
    }
    fences(seen, &mut wrong);
    wrong
}

/// The window in which the caller certainly held the lease: from the answer to the expiry counted
/// from the request, or to the sending of the release.
fn surely(seen: &ObservedCall, early: i64) -> Option<(i64, i64)> {
    let ObservedAnswer::Granted { ttl, release_sent, .. } = seen.answer else { return None };
    let until = seen.sent + ttl - early;
    let until = release_sent.map_or(until, |sent| until.min(sent));
    seen.answered.filter(|from| *from < until).map(|from| (from, until))
}

/// The window in which the caller may have held the lease.
fn possibly(seen: &ObservedCall, late: i64) -> Option<(i64, i64)> {
    let last = |ttl: i64| seen.answered.map_or(i64::MAX, |at| at.saturating_add(ttl + late));
    match seen.answer {
        ObservedAnswer::Granted { ttl, released, .. } => {
            // The instant of the release's answer is part of the window: a call that was sent in
            // the same instant may have come before the release.
            let until = released.map_or(last(ttl), |at| last(ttl).min(at.saturating_add(1)));
            Some((seen.sent, until))
        }
        // The lease may have been granted at any instant up to the answer, and without an answer
        // at any later instant.
        ObservedAnswer::Unknown { ttl } => Some((seen.sent, last(ttl))),
        ObservedAnswer::Conflict => None,
    }
}

fn meet(one: (i64, i64), other: (i64, i64)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

fn overlaps(name: &str, all: &[&ObservedCall], early: i64, wrong: &mut Vec<String>) {
    let mut held: Vec<((i64, i64), &ObservedCall)> =
        all.iter().filter_map(|seen| surely(seen, early).map(|window| (window, *seen))).collect();
    held.sort_by_key(|(window, _)| *window);
    for (at, (window, seen)) in held.iter().enumerate() {
        let later = held[at + 1..].iter().take_while(|(other, _)| other.0 < window.1);
        for (other, call) in later.filter(|(_, call)| meet(seen.range, call.range)) {
            wrong.push(format!("{name}: held twice, {window:?} {seen:?} and {other:?} {call:?}"));
        }
    }
}

fn conflicts(name: &str, all: &[&ObservedCall], late: i64, wrong: &mut Vec<String>) {
    for seen in all.iter().filter(|seen| seen.answer == ObservedAnswer::Conflict) {
        let window = (seen.sent, seen.answered.unwrap_or(i64::MAX).saturating_add(1));
        let held = all.iter().any(|other| {
            let may = possibly(other, late).is_some_and(|may| meet(window, may));
            may && meet(seen.range, other.range)
        });
        if !held {
            wrong.push(format!("{name}: a conflict without a holder, {seen:?}"));
        }
    }
}

/// A grant sent after another was answered must have a higher fence, and no fence repeats.
fn fences(seen: &[ObservedCall], wrong: &mut Vec<String>) {
    let grants = seen.iter().filter_map(|one| match one.answer {
        ObservedAnswer::Granted { fence, .. } => Some((one.sent, one.answered?, fence)),
        _ => None,
    });
    let mut by_sent: Vec<(i64, i64, i64)> = grants.collect();
    by_sent.sort_unstable();
    let mut by_answer = by_sent.clone();
    by_answer.sort_unstable_by_key(|(_, answered, _)| *answered);
    let mut highest = i64::MIN;
    let mut before = by_answer.iter().peekable();
    for (sent, _, fence) in &by_sent {
        while let Some((_, _, earlier)) = before.next_if(|(_, answered, _)| answered < sent) {
            highest = highest.max(*earlier);
        }
        if *fence <= highest {
            wrong.push(format!("fence {fence} came after {highest} was answered"));
        }
    }
    let mut numbers: Vec<i64> = by_sent.iter().map(|(.., fence)| *fence).collect();
    numbers.sort_unstable();
    for pair in numbers.windows(2).filter(|pair| pair[0] == pair[1]) {
        wrong.push(format!("fence {} was given twice", pair[0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ClockTolerance = ClockTolerance { early: 0, late: 0 };

    fn granted(sent: i64, answered: i64, fence: i64, ttl: i64) -> ObservedCall {
        let answer = ObservedAnswer::Granted { fence, ttl, release_sent: None, released: None };
        ObservedCall { name: "n".into(), range: ALL, sent, answered: Some(answered), answer }
    }

    #[test]
    fn what_must_not_be_is_found_and_what_may_be_is_not() {
        let one = granted(0, 5, 1, 100);
        assert!(judge(&[one.clone(), granted(90, 101, 2, 100)], NONE).is_empty());
        assert_eq!(judge(&[one.clone(), granted(10, 20, 2, 100)], NONE).len(), 1);
        let next = granted(200, 210, 1, 5);
        assert_eq!(judge(&[one.clone(), next], NONE).len(), 2, "the same, and not higher");
        let conflict = |sent, answered| ObservedCall {
            answer: ObservedAnswer::Conflict,
            ..granted(sent, answered, 0, 0)
        };
        assert!(judge(&[one.clone(), conflict(50, 60)], NONE).is_empty());
        assert!(judge(&[one.clone(), conflict(104, 106)], NONE).is_empty());
        assert_eq!(judge(&[one.clone(), conflict(105, 106)], NONE).len(), 1);
        let late = ClockTolerance { late: 1, ..NONE };
        assert!(judge(&[one, conflict(105, 106)], late).is_empty(), "a lease may end late");
    }

    #[test]
    fn a_conflict_in_the_instant_of_a_release_may_be_and_a_later_one_must_not() {
        let released = ObservedAnswer::Granted {
            fence: 1,
            ttl: 100,
            release_sent: Some(20),
            released: Some(20),
        };
        let one = ObservedCall { answer: released, ..granted(0, 5, 1, 100) };
        let conflict =
            |at| ObservedCall { answer: ObservedAnswer::Conflict, ..granted(at, at, 0, 0) };
        assert!(judge(&[one.clone(), conflict(20)], NONE).is_empty());
        assert_eq!(judge(&[one, conflict(21)], NONE).len(), 1);
    }

    #[test]
    fn ranges_that_touch_are_no_overlap() {
        let slot =
            |range, sent, fence| ObservedCall { range, ..granted(sent, sent + 1, fence, 100) };
        assert!(judge(&[slot((0, 10), 0, 1), slot((10, 20), 5, 6)], NONE).is_empty());
        assert_eq!(judge(&[slot((0, 10), 0, 1), slot((9, 20), 5, 6)], NONE).len(), 1);
    }

    #[test]
    fn a_step_of_the_clock_excuses_what_it_made_and_no_more() {
        let one = granted(0, 5, 1, 100);
        let next = granted(80, 95, 2, 100);
        let stepped = |early| ClockTolerance { early, ..NONE };
        assert_eq!(judge(&[one.clone(), next.clone()], stepped(4)).len(), 1);
        assert!(judge(&[one, next], stepped(5)).is_empty());
    }
}
