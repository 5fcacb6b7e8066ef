//! What callers of checks observed, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Which kind of caller a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerKind {
    /// A key with a limit: the index of its policy and its number.
    Counted,
    /// A caller that is blocked.
    Blocked,
    /// A call that needs no store; it measures the machine.
    Control,
    /// A caller that an act during the fault concerns.
    Act,
}

/// One answer. Instants are since the start of the load.
#[derive(Clone, Debug)]
pub struct ObservedCheck {
    pub caller: CallerKind,
    /// The node that was called.
    pub node: usize,
    /// The index of the key among its kind.
    pub key: usize,
    pub sent: Duration,
    pub received: Duration,
    /// 0 if there was no answer.
    pub status: u16,
    pub allowed: bool,
    pub degraded: bool,
}

impl ObservedCheck {
    pub fn took(&self) -> Duration {
        self.received.saturating_sub(self.sent)
    }
}

/// Admissions of one key beyond its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// All of them.
    pub all: usize,
    /// Those without `degraded`: more of them than the limit.
    pub exact: usize,
    /// Those without `degraded` on a key whose limit was used up before the fault, and which came
    /// more than a second after the fault.
    pub late: usize,
}

/// The admissions of a key beyond its limit. `later` is a second after the fault, by which its
/// nodes agree again.
pub fn excess(
    checks: &[ObservedCheck],
    key: usize,
    limit: usize,
    fault: Duration,
    later: Duration,
) -> Excess {
    let is_admitted = |check: &&ObservedCheck| {
        check.caller == CallerKind::Counted && check.key == key && check.allowed
    };
    let admitted: Vec<&ObservedCheck> = checks.iter().filter(is_admitted).collect();
    let exact: Vec<&&ObservedCheck> = admitted.iter().filter(|check| !check.degraded).collect();
    let before = exact.iter().filter(|check| check.received < fault).count();
    let late = exact.iter().filter(|check| check.sent > later).count();
    Excess {
        all: admitted.len().saturating_sub(limit),
        exact: exact.len().saturating_sub(limit),
        late: if before >= limit { late } else { 0 },
    }
}

/// How many of these keys were used up by exact admissions before an instant.
pub fn used_up(
    checks: &[ObservedCheck],
    keys: impl Iterator<Item = (usize, usize)>,
    before: Duration,
) -> usize {
    let mut admitted: BTreeMap<usize, usize> = BTreeMap::new();
    let is_exact = |check: &&ObservedCheck| {
        check.caller == CallerKind::Counted && check.allowed && !check.degraded
    };
    for check in checks.iter().filter(is_exact).filter(|check| check.received < before) {
        *admitted.entry(check.key).or_default() += 1;
    }
    let of = |key: usize| admitted.get(&key).copied().unwrap_or_default();
    keys.filter(|(key, limit)| of(*key) >= *limit).count()
}

/// Degraded answers: how many, for how long, and of which keys.
#[derive(Clone, Debug, Default)]
pub struct DegradedAnswers {
    pub count: usize,
    pub keys: BTreeSet<usize>,
    /// The first and the last one of each fault.
    spans: BTreeMap<usize, (Duration, Duration)>,
}

impl DegradedAnswers {
    /// `faults` are the instants at which faults began.
    pub fn of(checks: &[ObservedCheck], faults: &[Duration]) -> Self {
        let mut found = Self::default();
        for check in checks.iter().filter(|check| check.degraded) {
            found.count += 1;
            let at = check.received;
            let fault = faults.partition_point(|fault| *fault <= at).max(1);
            let (first, last) = found.spans.entry(fault).or_insert((at, at));
            *first = at.min(*first);
            *last = at.max(*last);
            if check.caller == CallerKind::Counted {
                found.keys.insert(check.key);
            }
        }
        found
    }

    /// The shortest time between the first and the last one of a fault, of this many faults.
    pub fn shortest(&self, faults: usize) -> Duration {
        let length = |(first, last): &(Duration, Duration)| last.saturating_sub(*first);
        let span = |fault: usize| self.spans.get(&fault).map(length).unwrap_or_default();
        (1..=faults).map(span).min().unwrap_or_default()
    }

    /// The time between the first and the last one of each fault, in all.
    pub fn length(&self) -> Duration {
        self.spans.values().map(|(first, last)| last.saturating_sub(*first)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(at: u64, degraded: bool) -> ObservedCheck {
        let at = Duration::from_millis(at);
        let caller = CallerKind::Counted;
        ObservedCheck {
            caller,
            node: 0,
            key: 1,
            sent: at,
            received: at,
            status: 200,
            allowed: true,
            degraded,
        }
    }

    #[test]
    fn admissions_beyond_the_limit_are_counted_apart() {
        let fault = Duration::from_millis(100);
        let later = fault + Duration::from_secs(1);
        let mut checks = vec![admitted(1, false), admitted(2, false), admitted(150, true)];
        let used_up = excess(&checks, 1, 2, fault, later);
        assert_eq!(used_up, Excess { all: 1, exact: 0, late: 0 });
        checks.push(admitted(2_000, false));
        assert_eq!(excess(&checks, 1, 2, fault, later), Excess { all: 2, exact: 1, late: 1 });
        assert_eq!(excess(&checks, 1, 3, fault, later), Excess { all: 1, exact: 0, late: 0 });
        assert_eq!(excess(&checks, 2, 0, fault, later), Excess::default());
    }

    #[test]
    fn degraded_answers_have_a_length_and_keys() {
        let checks = [admitted(5, false), admitted(10, true), admitted(25, true)];
        let first = Duration::from_millis(9);
        let found = DegradedAnswers::of(&checks, &[first]);
        assert_eq!((found.count, found.length()), (2, Duration::from_millis(15)));
        assert_eq!(DegradedAnswers::of(&checks[..1], &[first]).length(), Duration::ZERO);
        let second = Duration::from_millis(20);
        let apart = DegradedAnswers::of(&checks, &[first, second]);
        assert_eq!((apart.count, apart.length()), (2, Duration::ZERO));
        assert_eq!(found.shortest(1), Duration::from_millis(15));
        assert_eq!(found.shortest(2), Duration::ZERO, "nothing was degraded by the second fault");
    }

    #[test]
    fn a_key_is_used_up_by_exact_admissions_before_the_fault() {
        let checks = [admitted(1, false), admitted(2, true), admitted(5, false)];
        let before = |at| used_up(&checks, [(1, 2), (2, 1)].into_iter(), Duration::from_millis(at));
        assert_eq!((before(5), before(6)), (0, 1));
    }
}
