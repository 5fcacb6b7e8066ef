//! The figures of a run: what callers noticed of a fault.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::history::{CallerKind, DegradedAnswers, Excess, ObservedCheck, excess};
use super::load::{BLOCKED, KEYS, limit_of};
use super::lock_history::{LockFindings, LockHistory};

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

/// The figures of one run.
#[derive(Debug)]
pub struct Measures {
    pub checks: usize,
    /// The longest answer of a check.
    pub longest: Duration,
    /// The longest answer of a call that needs no store.
    pub longest_control: Duration,
    pub not_200: usize,
    pub degraded: DegradedAnswers,
    /// Keys with degraded answers whose server was not struck.
    pub degraded_elsewhere: usize,
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
    /// `struck` has the keys on the server with the fault; `None` if that is the only server.
    pub fn new(
        checks: &[ObservedCheck],
        payment: &LockHistory,
        resource: &LockHistory,
        rounds: &[FaultRound],
        struck: Option<&BTreeSet<usize>>,
    ) -> Self {
        let (control, calls): (Vec<&ObservedCheck>, Vec<&ObservedCheck>) =
            checks.iter().partition(|check| check.caller == CallerKind::Control);
        let longest = |of: &[&ObservedCheck]| of.iter().map(|check| check.took()).max();
        let is_failed = |check: &&&ObservedCheck| check.status != 200;
        let faults: Vec<Duration> = rounds.iter().map(|round| round.fault).collect();
        let degraded = DegradedAnswers::of(checks, &faults);
        let elsewhere = |struck| degraded.keys.difference(struck).count();
        let is_disturbed = |check: &&&ObservedCheck| check.degraded || check.status != 200;
        let disturbed = calls.iter().filter(is_disturbed).map(|check| check.received);
        let refused = payment.refused.iter().chain(&resource.refused).copied();
        let mut measures = Self {
            checks: calls.len(),
            longest: longest(&calls).unwrap_or_default(),
            longest_control: longest(&control).unwrap_or_default(),
            not_200: calls.iter().filter(is_failed).count(),
            degraded_elsewhere: struck.map_or(0, elsewhere),
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
            payment_refused: payment.refused.len(),
            resource_refused: resource.refused.len(),
            grants: payment.grants.len() + resource.grants.len(),
            recovered: longest_recovery(rounds, disturbed),
            locks_recovered: longest_recovery(rounds, refused),
        };
        measures.count_excess(checks, rounds);
        let first = faults.first().copied().unwrap_or_default();
        measures.count_blocked(&calls, first + REWRITTEN);
        measures
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
            "grants": self.grants,
            "longest_ms": ms(self.longest),
            "longest_control_ms": ms(self.longest_control),
            "not_200": self.not_200,
            "degraded": self.degraded.count,
            "degraded_ms": ms(self.degraded.length()),
            "degraded_keys": self.degraded.keys.len(),
            "degraded_keys_elsewhere": self.degraded_elsewhere,
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
