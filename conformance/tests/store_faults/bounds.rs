//! What a fault may cost, per case, and the comparison with what it did cost.

use std::time::Duration;

use super::measures::Measures;
use super::node::TTL_MS;

/// What the machine may add to an answer, besides what it adds to calls that need no store.
const NOISE: Duration = Duration::from_millis(200);
/// The same, and what a recovery may take, on a machine that other work makes slow.
const GENEROUS_NOISE: Duration = Duration::from_secs(2);
const GENEROUS_RECOVERY: Duration = Duration::from_secs(15);
/// The environment variable that asks for generous bounds.
const GENEROUS: &str = "CATRACA_FAULTS_GENEROUS";

/// How times are judged. On a slow machine, deadlines are missed by servers without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBounds {
    Strict,
    /// Answers and recoveries may take longer, and any answer may be degraded. What callers are
    /// promised in any case is judged as ever: answers, limits, blocks, holders and fences.
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
        let mut broken = self.broken_promises(found);
        broken.extend(self.exceeded_times(found, times));
        if times == TimeBounds::Strict {
            broken.extend(self.needless_disturbances(found));
        }
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
        expect(found.grants > 0, "no lock was granted".to_owned());
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
        let longest = self.deadline + noise + 2 * found.longest_control;
        let bounds = [
            ("longest answer", found.longest, longest),
            ("recovered", found.recovered, self.recovers + more),
            ("locks recovered", found.locks_recovered, self.locks_recover() + more),
        ];
        let exceeded = bounds.iter().filter(|(_, time, bound)| time > bound);
        exceeded.map(|(what, time, _)| format!("{what} {time:?}")).collect()
    }

    /// Callers that noticed a fault that was none of theirs.
    fn needless_disturbances(&self, found: &Measures) -> Vec<String> {
        let degraded = if self.degrades { 0 } else { found.degraded.count };
        let refused = found.payment_refused + found.resource_refused;
        let refused = if self.refuses { 0 } else { refused };
        let counts = [
            (degraded, "degraded answers"),
            (found.degraded_elsewhere, "keys of other servers were degraded"),
            (refused, "requests for locks refused"),
        ];
        let found = counts.iter().filter(|(count, _)| *count > 0);
        found.map(|(count, what)| format!("{count} {what}")).collect()
    }

    fn locks_recover(&self) -> Duration {
        let grace = if self.waits_grace { Duration::from_millis(TTL_MS) } else { Duration::ZERO };
        self.recovers + grace + self.grace_margin
    }

    /// The bounds of this case in words, for the table.
    pub fn describe(&self) -> String {
        let limits = |count: usize| match count {
            0 => "none".to_owned(),
            1 => "1 limit".to_owned(),
            more => format!("{more} limits"),
        };
        let exact = limits(self.exact_limits);
        let mut words = format!("{}; exact {exact}", limits(self.limits));
        if !self.forgets {
            words += ", and none of a used-up key after 1 s";
        }
        if self.loses_blocks {
            words += " · blocked callers pass for up to 2 s";
        }
        let recovers = self.recovers.as_secs();
        words += &match self.degrades {
            true => format!(" · degraded until {recovers} s after the end"),
            false => " · never degraded".to_owned(),
        };
        words += &match (self.refuses, self.waits_grace) {
            (false, _) => " · no lock refused".to_owned(),
            (true, false) => format!(" · locks refused until {recovers} s after the end"),
            (true, true) => {
                let seconds = (self.recovers + self.grace_margin).as_secs();
                format!(" · locks refused until {seconds} s after the end + `ttl_max`")
            }
        };
        words + &format!(" · two holders {}", self.double_resource)
    }
}
