//! The figures of a run: what callers noticed of a fault.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::acts::ActFindings;
use super::bounds::CUT_OFF_ACTS;
use super::history::{CallerKind, DegradedAnswers, Excess, ObservedCheck, excess, used_up};
use super::load::{BLOCKED, KEYS, LoadHistory, early_keys, limit_of};
use super::lock_history::{LockFindings, RefusedLock};

/// After an orderly change of the primary, all nodes agree again within this time.
const AGREED: Duration = Duration::from_secs(1);

/// A store that is emptied while it runs has every block again within this time.
const REWRITTEN: Duration = Duration::from_secs(2);

/// One fault of a run. Instants are since the start of the load.
#[derive(Clone, Copy, Debug)]
pub struct FaultRound {
    pub fault: Duration,
    /// When the fault was over: the store was whole again, or had nothing left to do.
    pub mended: Duration,
    /// When nothing was disturbed any more. What happens later has another cause.
    pub calm: Duration,
}

/// What a fault concerned, besides the store as a whole.
#[derive(Debug, Default)]
pub struct Concerned {
    /// The keys on the server with the fault; `None` if that is the only server.
    pub keys: Option<BTreeSet<usize>>,
    /// The node that was killed: its callers have no answers until the end of the fault.
    pub node: Option<usize>,
    /// Whether acts need only count from the end of the fault: nodes have no way to each other.
    pub acts_wait: bool,
    /// The node whose acts need only count from then on.
    pub cut_off_node: Option<usize>,
    /// Blocks that were answered as durable and that the records lack.
    pub missing_blocks: usize,
    /// Faults that left every primary as it was, although they were to replace one.
    pub unreplaced: usize,
}

/// How much load there was: without enough of it, nothing was measured.
#[derive(Debug, Default)]
pub struct LoadFigures {
    /// Checks of keys with a limit that were answered, a second.
    pub per_second: u64,
    /// Keys of the smaller limit that were not used up before their fault.
    pub unused_keys: usize,
    /// Grants of the kind with fewer of them before the first fault.
    pub grants_before: usize,
    /// Calls of blocked callers that one node alone had seen.
    pub unseen_calls: usize,
    /// Faults that left every primary as it was, although they were to replace one.
    pub unreplaced: usize,
}

/// The figures of one run.
#[derive(Debug)]
pub struct Measures {
    pub load: LoadFigures,
    pub acts: ActFindings,
    pub missing_blocks: usize,
    pub durable_blocks: usize,
    /// From the end of the last fault until a block was durable; `None` if none was.
    pub durable_again: Option<Duration>,
    pub checks: usize,
    /// The longest answer of a check.
    pub longest: Duration,
    /// The longest answer of a call that needs no store.
    pub longest_control: Duration,
    pub not_200: usize,
    pub degraded: DegradedAnswers,
    /// The time between the first and the last degraded answer, of the fault with the least.
    pub degraded_shortest: Duration,
    /// Degraded answers about keys whose server was not struck, and all answers about them from the
    /// fault until the calm.
    pub degraded_elsewhere: usize,
    pub answers_elsewhere: usize,
    /// The largest figures of any key, and their sums.
    pub worst: Excess,
    pub sum: Excess,
    /// The largest excess in limits of its key, in thousandths, of all and of exact admissions.
    pub worst_share: usize,
    pub worst_exact_share: usize,
    /// Answers that let a blocked caller pass, and those of callers that one node alone had seen.
    pub blocked_passed: usize,
    pub unseen_passed: usize,
    /// Those of both that came later than the time in which nodes write lost blocks again.
    pub passed_late: usize,
    pub payment: LockFindings,
    pub resource: LockFindings,
    /// Requests of each kind that the store refused.
    pub payment_refused: usize,
    pub resource_refused: usize,
    pub grants: usize,
    /// From the end of the fault until the last degraded or failed answer.
    pub recovered: Duration,
    /// From the end of the fault until the last refused request for a lock.
    pub locks_recovered: Duration,
}

impl Measures {
    pub fn new(history: &LoadHistory, rounds: &[FaultRound], concerned: &Concerned) -> Self {
        let LoadHistory { checks, payment, resource, acts } = history;
        let (control, calls): (Vec<&ObservedCheck>, Vec<&ObservedCheck>) =
            checks.iter().partition(|check| check.caller == CallerKind::Control);
        let calls: Vec<&ObservedCheck> =
            calls.into_iter().filter(|check| !is_of_dead_node(check, rounds, concerned)).collect();
        let longest = |of: &[&ObservedCheck]| of.iter().map(|check| check.took()).max();
        let is_failed = |check: &&&ObservedCheck| check.status != 200;
        let faults: Vec<Duration> = rounds.iter().map(|round| round.fault).collect();
        let degraded = DegradedAnswers::of(checks, &faults);
        let elsewhere = answers_elsewhere(&calls, rounds, concerned);
        let is_degraded = |check: &&&ObservedCheck| check.degraded;
        let is_disturbed = |check: &&&ObservedCheck| check.degraded || check.status != 200;
        let disturbed = calls.iter().filter(is_disturbed).map(|check| check.received);
        let is_refused = |one: &&RefusedLock| one.is_answered || concerned.node != Some(one.node);
        let refused = [payment, resource].map(|kind| {
            let of_kind = kind.refused.iter().filter(is_refused);
            of_kind.map(|one| one.at).collect::<Vec<Duration>>()
        });
        let mut measures = Self {
            load: LoadFigures {
                unreplaced: concerned.unreplaced,
                ..LoadFigures::new(history, rounds)
            },
            acts: acts.findings(checks, |act| {
                let mended = rounds[act.round].mended;
                let from = match concerned.cut_off_node == Some(act.node) {
                    true => mended.min(act.acknowledged + CUT_OFF_ACTS),
                    false if concerned.acts_wait => mended,
                    false => Duration::ZERO,
                };
                act.acknowledged.max(from)
            }),
            missing_blocks: concerned.missing_blocks,
            durable_blocks: acts.durable.len(),
            durable_again: rounds.last().and_then(|round| acts.durable_after(round.mended)),
            checks: calls.len(),
            longest: longest(&calls).unwrap_or_default(),
            longest_control: longest(&control).unwrap_or_default(),
            not_200: calls.iter().filter(is_failed).count(),
            degraded_shortest: degraded.shortest(rounds.len()),
            degraded_elsewhere: elsewhere.iter().filter(is_degraded).count(),
            answers_elsewhere: elsewhere.len(),
            degraded,
            worst: Excess::default(),
            sum: Excess::default(),
            worst_share: 0,
            worst_exact_share: 0,
            blocked_passed: 0,
            unseen_passed: 0,
            passed_late: 0,
            payment: payment.findings(),
            resource: resource.findings(),
            payment_refused: refused[0].len(),
            resource_refused: refused[1].len(),
            grants: payment.grants.len() + resource.grants.len(),
            recovered: longest_recovery(rounds, disturbed),
            locks_recovered: longest_recovery(rounds, refused.into_iter().flatten()),
        };
        measures.count_excess(checks, rounds);
        let first = faults.first().copied().unwrap_or_default();
        measures.count_blocked(&calls, first + REWRITTEN);
        measures
    }

    /// The figures of a run in which nothing happened.
    pub fn of_nothing() -> Self {
        let [fault, mended, calm] = [5, 6, 9].map(Duration::from_secs);
        let round = FaultRound { fault, mended, calm };
        Self::new(&LoadHistory::default(), &[round], &Concerned::default())
    }

    fn count_excess(&mut self, checks: &[ObservedCheck], rounds: &[FaultRound]) {
        for key in 0..KEYS * rounds.len() {
            let limit = limit_of(key).1;
            let fault = rounds[key / KEYS].fault;
            let own = excess(checks, key, limit, fault, fault + AGREED);
            self.worst_share = self.worst_share.max(own.all * 1_000 / limit);
            self.worst_exact_share = self.worst_exact_share.max(own.exact * 1_000 / limit);
            self.worst.all = self.worst.all.max(own.all);
            self.worst.exact = self.worst.exact.max(own.exact);
            self.worst.late = self.worst.late.max(own.late);
            self.sum.all += own.all;
            self.sum.exact += own.exact;
            self.sum.late += own.late;
        }
    }

    fn count_blocked(&mut self, calls: &[&ObservedCheck], late: Duration) {
        let passed = calls.iter().filter(|call| call.caller == CallerKind::Blocked && call.allowed);
        for call in passed {
            let count =
                if call.key < BLOCKED { &mut self.blocked_passed } else { &mut self.unseen_passed };
            *count += 1;
            self.passed_late += usize::from(call.sent > late);
        }
    }

    pub fn to_json(&self) -> Value {
        let ms = |time: Duration| time.as_millis() as u64;
        json!({
            "checks": self.checks,
            "checks_per_second": self.load.per_second,
            "keys_not_used_up": self.load.unused_keys,
            "acts": self.acts.to_json(),
            "durable_blocks": self.durable_blocks,
            "missing_blocks": self.missing_blocks,
            "durable_again_ms": self.durable_again.map(ms),
            "grants": self.grants,
            "longest_ms": ms(self.longest),
            "longest_control_ms": ms(self.longest_control),
            "not_200": self.not_200,
            "degraded": self.degraded.count,
            "degraded_ms": ms(self.degraded.length()),
            "degraded_keys": self.degraded.keys.len(),
            "degraded_elsewhere": self.degraded_elsewhere,
            "answers_elsewhere": self.answers_elsewhere,
            "over_limit": { "worst": self.worst.all, "sum": self.sum.all },
            "over_limit_exact": { "worst": self.worst.exact, "sum": self.sum.exact },
            "over_limit_exact_late": { "worst": self.worst.late, "sum": self.sum.late },
            "blocked_passed": self.blocked_passed,
            "unseen_blocked_passed": self.unseen_passed,
            "blocked_passed_late": self.passed_late,
            "double_payment": self.payment.double,
            "double_resource": self.resource.double,
            "falling_fences": self.payment.falling + self.resource.falling,
            "refused_payment": self.payment_refused,
            "refused_resource": self.resource_refused,
            "recovered_ms": ms(self.recovered),
            "locks_recovered_ms": ms(self.locks_recovered),
        })
    }
}

impl LoadFigures {
    fn new(history: &LoadHistory, rounds: &[FaultRound]) -> Self {
        let is_counted =
            |check: &&ObservedCheck| check.caller == CallerKind::Counted && check.status == 200;
        let counted = history.checks.iter().filter(is_counted).count() as u64;
        let length = rounds.last().map_or(0, |round| round.calm.as_millis() as u64);
        let unused = |(number, round): (usize, &FaultRound)| {
            let keys = || early_keys(number);
            keys().count() - used_up(&history.checks, keys(), round.fault)
        };
        let first = rounds.first().map_or(Duration::ZERO, |round| round.fault);
        let grants = [&history.payment, &history.resource]
            .map(|kind| kind.grants.iter().filter(|grant| grant.received < first).count());
        let is_unseen = |check: &&ObservedCheck| {
            check.caller == CallerKind::Blocked && check.key >= BLOCKED && check.status == 200
        };
        Self {
            per_second: counted * 1_000 / length.max(1),
            unused_keys: rounds.iter().enumerate().map(unused).sum(),
            grants_before: grants.into_iter().min().unwrap_or_default(),
            unseen_calls: history.checks.iter().filter(is_unseen).count(),
            unreplaced: 0,
        }
    }
}

/// Whether a call was lost with the node that was killed.
fn is_of_dead_node(check: &ObservedCheck, rounds: &[FaultRound], concerned: &Concerned) -> bool {
    let is_during =
        |round: &FaultRound| check.received >= round.fault && check.sent <= round.mended;
    concerned.node == Some(check.node) && check.status == 0 && rounds.iter().any(is_during)
}

/// The answers about keys whose server was not struck, from each fault until the calm.
fn answers_elsewhere<'c>(
    calls: &[&'c ObservedCheck],
    rounds: &[FaultRound],
    concerned: &Concerned,
) -> Vec<&'c ObservedCheck> {
    let Some(struck) = &concerned.keys else { return Vec::new() };
    let is_during = |check: &ObservedCheck| {
        rounds.iter().any(|round| check.received >= round.fault && check.sent <= round.calm)
    };
    let is_elsewhere = |check: &&ObservedCheck| {
        check.caller == CallerKind::Counted && !struck.contains(&check.key) && is_during(check)
    };
    calls.iter().copied().filter(is_elsewhere).collect()
}

/// The longest time from the end of a fault until the last of these instants, of those before the
/// calm after it.
fn longest_recovery(rounds: &[FaultRound], instants: impl Iterator<Item = Duration>) -> Duration {
    let since_end = |at: Duration| {
        let begun = rounds.partition_point(|round| round.fault <= at);
        let last = rounds[..begun].last().filter(|round| at <= round.calm);
        last.map_or(Duration::ZERO, |round| at.saturating_sub(round.mended))
    };
    instants.map(since_end).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_recovery_is_counted_from_the_end_of_its_own_fault() {
        let seconds = Duration::from_secs;
        let round = |fault, mended, calm| FaultRound {
            fault: seconds(fault),
            mended: seconds(mended),
            calm: seconds(calm),
        };
        let rounds = [round(5, 6, 12), round(20, 24, 30)];
        let longest = |at: &[u64]| longest_recovery(&rounds, at.iter().copied().map(seconds));
        assert_eq!(longest(&[]), Duration::ZERO);
        assert_eq!(longest(&[1, 5, 9, 21]), seconds(3));
        assert_eq!(longest(&[7, 29]), seconds(5));
        assert_eq!(longest(&[7, 17, 31]), seconds(1), "after the calm");
    }
}
