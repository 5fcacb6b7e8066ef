//! What a fault may cost, per case, and the comparison with what it did cost.

use std::time::Duration;

use super::measures::Measures;
use super::node::TTL_MS;

/// What the machine may add to an answer, besides what it adds to calls that need no store.
const NOISE: Duration = Duration::from_millis(200);
/// The same, and what a recovery may take, on a machine that other work makes slow.
const GENEROUS_NOISE: Duration = Duration::from_secs(2);
const GENEROUS_RECOVERY: Duration = Duration::from_secs(15);
/// How long acts may take to count, in addition.
const GENEROUS_ACTS: Duration = Duration::from_secs(5);
/// Of a hundred answers, how many a slow machine may degrade or refuse without a fault.
const GENEROUS_SHARE: usize = 10;
/// After an act, every node obeys within this time.
pub const ACTS: Duration = Duration::from_secs(1);
/// What a node does that alone is cut off from the store has that much more time.
pub const CUT_OFF_ACTS: Duration = Duration::from_secs(3);
/// After the end of a fault of the records, blocks are durable again within this time.
pub const RECORDS_RECOVER: Duration = Duration::from_secs(5);
/// Without this many checks a second, of 800, a run has measured nothing.
pub const RATE_MIN: u64 = 400;
const GENEROUS_RATE_MIN: u64 = 150;
/// The environment variable that asks for generous bounds.
const GENEROUS: &str = "CATRACA_FAULTS_GENEROUS";

/// How times are judged. On a slow machine, deadlines are missed by servers without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBounds {
    Strict,
    /// Answers, recoveries and acts may take longer, and a few answers may be degraded without a
    /// reason. What callers are promised in any case is judged as ever: answers, limits, blocks,
    /// holders and fences.
    Generous,
}

impl TimeBounds {
    pub fn wanted() -> Self {
        if std::env::var_os(GENEROUS).is_some() { Self::Generous } else { Self::Strict }
    }
}

/// The bounds of a case. Those that every case has are in [`Bounds::violations`].
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// No check waits longer for the store.
    pub deadline: Duration,
    /// Admissions of a key beyond its limit without `degraded`, in limits.
    pub exact_limits: usize,
    /// All admissions of a key beyond its limit, in limits.
    pub limits: usize,
    /// Whether a used-up key may be admitted without `degraded` later than a second after the
    /// fault: only where the store has lost its memory.
    pub forgets: bool,
    /// Whether blocked callers may pass within 2 s: where a store is emptied while it runs.
    pub loses_blocks: bool,
    /// Whether any answer may be degraded.
    pub degrades: bool,
    /// From the first degraded answer of a fault to the last one, at least: without that, the fault
    /// has not reached the callers, or nodes have not said so.
    pub degrades_for: Duration,
    /// Whether acts during the fault count only from its end: nodes have no other way to each
    /// other.
    pub acts_wait: bool,
    /// The node that is cut off from the store while others are not: what it does reaches them
    /// through the records, within [`CUT_OFF_ACTS`].
    pub cut_off_node: Option<usize>,
    /// Whether there are primaries without the fault, whose keys must not be degraded.
    pub has_others: bool,
    /// Whether keys have another primary after the fault: a failover, or slots that were moved.
    pub replaces: bool,
    /// The node that is killed, whose callers have no answers until the end of the fault.
    pub dead_node: Option<usize>,
    /// Whether the records fail, and must have every block that was answered as durable.
    pub records_fail: bool,
    /// Two holders of one name, of kinds without `failover_grace`.
    pub double_resource: usize,
    /// Whether requests for locks may be refused.
    pub refuses: bool,
    /// From the end of the fault until the last degraded answer.
    pub recovers: Duration,
    /// Whether kinds with `failover_grace` wait for their `ttl_max` in addition.
    pub waits_grace: bool,
    /// What is added to that wait, because nodes may confirm the primary at different instants.
    pub grace_margin: Duration,
}

impl Default for Bounds {
    /// The bounds of a store that is unavailable for a while and loses nothing.
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(50),
            exact_limits: 0,
            limits: 1,
            forgets: false,
            loses_blocks: false,
            degrades: true,
            degrades_for: Duration::ZERO,
            acts_wait: false,
            cut_off_node: None,
            has_others: false,
            replaces: false,
            dead_node: None,
            records_fail: false,
            double_resource: 0,
            refuses: true,
            recovers: Duration::from_secs(3),
            waits_grace: false,
            grace_margin: Duration::ZERO,
        }
    }
}

impl Bounds {
    /// Every bound that is exceeded.
    pub fn violations(&self, found: &Measures, times: TimeBounds) -> Vec<String> {
        let mut broken = self.not_measured(found, times);
        broken.extend(self.broken_promises(found));
        broken.extend(self.exceeded_times(found, times));
        broken.extend(self.needless_disturbances(found, times));
        broken.extend(self.missing_effects(found));
        broken
    }

    /// What no fault and no slow machine may cause.
    fn broken_promises(&self, found: &Measures) -> Vec<String> {
        let mut broken = Vec::new();
        let mut expect = |holds: bool, what: String| {
            if !holds {
                broken.push(what);
            }
        };
        expect(found.not_200 == 0, format!("{} checks without a 200", found.not_200));
        let passed = [found.blocked_passed, found.unseen_passed];
        let unseen = passed[1];
        if self.loses_blocks {
            let late = found.passed_late;
            expect(late == 0, format!("{late} blocked passed after 2 s"));
        } else {
            expect(passed[0] == 0, format!("{} blocked passed", passed[0]));
            expect(unseen == 0, format!("{unseen} blocked passed that another node had blocked"));
        }
        let twice = found.payment.double;
        expect(twice == 0, format!("{twice} leases of payment with two holders"));
        let falling = found.payment.falling + found.resource.falling;
        expect(falling == 0, format!("{falling} fences fell"));
        let missing = found.missing_blocks;
        expect(missing == 0, format!("{missing} durable blocks are not in the records"));
        let exact = found.worst_exact_share <= self.exact_limits * 1_000;
        expect(exact, format!("{} exact admissions over a limit", found.worst.exact));
        let all = found.worst_share <= self.limits * 1_000;
        expect(all, format!("{} admissions over a limit", found.worst.all));
        let late = found.sum.late;
        expect(late == 0 || self.forgets, format!("{late} late admissions of used-up keys"));
        let twice = found.resource.double;
        let double = twice <= self.double_resource;
        expect(double, format!("{twice} leases of resource with two holders"));
        broken
    }

    fn exceeded_times(&self, found: &Measures, times: TimeBounds) -> Vec<String> {
        let (noise, more) = match times {
            TimeBounds::Strict => (NOISE, Duration::ZERO),
            TimeBounds::Generous => (GENEROUS_NOISE, GENEROUS_RECOVERY),
        };
        let acts = if times == TimeBounds::Strict { ACTS } else { ACTS + GENEROUS_ACTS };
        let longest = self.deadline + noise + 2 * found.longest_control;
        let bounds = [
            ("longest answer", found.longest, longest),
            ("recovered", found.recovered, self.recovers + more),
            ("locks recovered", found.locks_recovered, self.locks_recover() + more),
            ("acts not obeyed", found.acts.longest(), acts),
        ];
        let mut bounds = bounds.to_vec();
        if self.records_fail {
            let again = found.durable_again.unwrap_or(Duration::MAX);
            bounds.push(("durable again", again, RECORDS_RECOVER + more));
        }
        let exceeded = bounds.iter().filter(|(_, time, bound)| time > bound);
        let worst = &found.acts.worst;
        let words = |(what, time, bound): &(&str, Duration, Duration)| match *what {
            "acts not obeyed" => format!("{what} {time:?}, at most {bound:?}: {worst}"),
            _ => format!("{what} {time:?}, at most {bound:?}"),
        };
        exceeded.map(words).collect()
    }

    /// A fault that no caller noticed was none.
    fn missing_effects(&self, found: &Measures) -> Vec<String> {
        let (shortest, least) = (found.degraded_shortest, self.degrades_for);
        let mut missing = Vec::new();
        if shortest < least {
            missing.push(format!("degraded for {shortest:?} only, at least {least:?} are due"));
        }
        if self.degrades_for > Duration::ZERO && found.payment_refused == 0 {
            missing.push("no request for a lock was refused".to_owned());
        }
        missing
    }

    /// Callers that noticed a fault that was none of theirs.
    fn needless_disturbances(&self, found: &Measures, times: TimeBounds) -> Vec<String> {
        let degraded = if self.degrades { 0 } else { found.degraded.count };
        let refused = found.payment_refused + found.resource_refused;
        let refused = if self.refuses { 0 } else { refused };
        let share = if times == TimeBounds::Strict { 0 } else { GENEROUS_SHARE };
        let counts = [
            (degraded, found.checks, "degraded answers"),
            (
                found.degraded_elsewhere,
                found.answers_elsewhere,
                "degraded answers of other servers",
            ),
            (refused, found.grants, "requests for locks refused"),
        ];
        let exceeded = counts.iter().filter(|(count, all, _)| count * 100 > all * share);
        exceeded.map(|(count, all, what)| format!("{count} {what} ({all} in all)")).collect()
    }

    /// From the end of the fault until the last refused request for a lock.
    pub fn locks_recover(&self) -> Duration {
        let grace = if self.waits_grace { Duration::from_millis(TTL_MS) } else { Duration::ZERO };
        self.recovers + grace + self.grace_margin
    }

    /// What must have happened for the figures to say anything.
    fn not_measured(&self, found: &Measures, times: TimeBounds) -> Vec<String> {
        let rate_min = if times == TimeBounds::Strict { RATE_MIN } else { GENEROUS_RATE_MIN };
        let load = &found.load;
        let needs = [
            (load.per_second >= rate_min, format!("{} checks a second", load.per_second)),
            (load.unused_keys == 0, format!("{} keys were not used up", load.unused_keys)),
            (load.grants_before > 0, "no lock of a kind was granted before the fault".to_owned()),
            (load.unseen_calls > 0, "no unseen blocked caller called".to_owned()),
            (found.acts.open == 0, format!("{} acts were never acknowledged", found.acts.open)),
            (
                found.acts.unobserved == 0,
                format!("{} acts were not observed", found.acts.unobserved),
            ),
            (
                !self.has_others || found.answers_elsewhere > 0,
                "no key of another primary was checked".to_owned(),
            ),
            (
                !self.forgets || found.sum.exact > 0,
                "no used-up key was admitted again, so the store has forgotten nothing".to_owned(),
            ),
            (
                load.unreplaced == 0,
                format!("{} faults left every primary as it was", load.unreplaced),
            ),
        ];
        let missing = needs.into_iter().filter(|(is_met, _)| !is_met);
        missing.map(|(_, what)| format!("not measured: {what}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acts::ActFindings;

    /// The figures of a run in which nothing happened, and whose acts were not acknowledged.
    fn nothing() -> Measures {
        let acts = ActFindings { open: 3, ..ActFindings::default() };
        Measures { acts, ..Measures::of_nothing() }
    }

    #[test]
    fn a_run_without_load_or_an_effect_of_its_fault_fails() {
        let bounds = Bounds { degrades_for: Duration::from_secs(1), ..Bounds::default() };
        for times in [TimeBounds::Strict, TimeBounds::Generous] {
            let broken = bounds.violations(&nothing(), times).join("; ");
            for part in [
                "not measured: 0 checks a second",
                "not measured: 20 keys were not used up",
                "not measured: no lock of a kind was granted",
                "not measured: no unseen blocked caller called",
                "not measured: 3 acts were never acknowledged",
                "degraded for 0ns only, at least 1s are due",
                "no request for a lock was refused",
            ] {
                assert!(broken.contains(part), "{part}: {broken}");
            }
        }
    }

    #[test]
    fn keys_of_other_servers_are_judged_on_a_slow_machine_too() {
        let exceeds = |count: usize, times: TimeBounds| {
            let found = Measures { degraded_elsewhere: count, answers_elsewhere: 100, ..nothing() };
            let broken = Bounds::default().violations(&found, times);
            broken.iter().any(|one| one.contains("degraded answers of other servers"))
        };
        assert!(exceeds(1, TimeBounds::Strict) && !exceeds(0, TimeBounds::Strict));
        assert!(exceeds(11, TimeBounds::Generous) && !exceeds(10, TimeBounds::Generous));
    }

    #[test]
    fn a_fault_that_changed_nothing_of_the_store_was_not_measured() {
        let count = |bounds: Bounds, found: &Measures| {
            let broken = bounds.violations(found, TimeBounds::Generous);
            broken.iter().filter(|one| one.starts_with("not measured")).count()
        };
        let plain = Bounds::default();
        let strict = Bounds { forgets: true, has_others: true, ..plain };
        let mut found = Measures { answers_elsewhere: 1, ..Measures::of_nothing() };
        found.sum.exact = 1;
        let others = count(plain, &found);
        assert_eq!(count(strict, &found), others);
        found.load.unreplaced = 1;
        assert_eq!(count(strict, &found), others + 1);
        found.sum.exact = 0;
        assert_eq!(count(strict, &found), others + 2);
        found.answers_elsewhere = 0;
        assert_eq!(count(strict, &found), others + 3);
    }

    /// On a slow machine, acts of every kind have more time, blocks too.
    #[test]
    fn a_block_during_the_fault_has_the_time_of_every_act() {
        let exceeds = |seconds: u64, times: TimeBounds| {
            let obeyed_after = vec![("block", Duration::from_secs(seconds))];
            let acts = ActFindings { obeyed_after, blocked_passed: 1, ..ActFindings::default() };
            let found = Measures { acts, ..Measures::of_nothing() };
            let broken = Bounds::default().violations(&found, times).join("; ");
            broken.contains("acts not obeyed") || broken.contains("passed")
        };
        assert!(exceeds(3, TimeBounds::Strict) && !exceeds(3, TimeBounds::Generous));
        assert!(exceeds(7, TimeBounds::Generous) && !exceeds(1, TimeBounds::Strict));
    }
}
