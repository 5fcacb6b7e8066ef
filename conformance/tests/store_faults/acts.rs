//! Acts that fall into the fault: a block of an operator, one that a caller brings upon itself, a
//! release, and a mode. What follows from them, by the answers of every node.

use std::time::Duration;

use serde_json::{Value, json};

use super::history::{CallerKind, ObservedCheck};

/// What an act does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActKind {
    /// An operator blocks a caller.
    Block,
    /// A caller exceeds a limit whose policy blocks for that.
    AutomaticBlock,
    /// An operator releases a caller.
    Release,
    /// An operator sets the mode of a policy: the kill switch, and back.
    Mode,
}

impl ActKind {
    pub const ALL: [Self; 4] = [Self::Block, Self::AutomaticBlock, Self::Release, Self::Mode];

    fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::AutomaticBlock => "automatic block",
            Self::Release => "release",
            Self::Mode => "mode",
        }
    }
}

/// An act that a node has acknowledged. Instants are since the start of the load.
#[derive(Clone, Debug)]
pub struct Act {
    pub kind: ActKind,
    pub policy: &'static str,
    pub customer: String,
    /// Whether the caller is allowed from then on.
    pub allows: bool,
    pub acknowledged: Duration,
    /// The node that was called.
    pub node: usize,
    /// The set of keys that was in use.
    pub round: usize,
}

/// All acts of a run.
#[derive(Debug, Default)]
pub struct ActHistory {
    /// The index is the key of the checks that observe the act.
    pub acts: Vec<Act>,
    /// Acts that are not acknowledged yet.
    pub open: usize,
    /// Answers that refused an act, which was then tried again.
    pub refused: usize,
    /// The longest time from the first request of an operator until the acknowledgement.
    pub longest_wait: Duration,
    /// The ids of blocks that were answered with `durable: true`, and when.
    pub durable: Vec<(String, Duration)>,
}

/// How acts were obeyed.
#[derive(Clone, Debug, Default)]
pub struct ActFindings {
    /// From the acknowledgement until the last answer of any node that did not obey, by kind.
    pub obeyed_after: Vec<(&'static str, Duration)>,
    /// Acts that no node has acknowledged.
    pub open: usize,
    pub refused: usize,
    pub longest_wait: Duration,
    /// Acts after whose acknowledgement no check was answered.
    pub unobserved: usize,
    /// The act that was obeyed last, and the node that did not obey.
    pub worst: String,
    /// How many answers let a blocked caller pass later than a second after the block.
    pub blocked_passed: usize,
}

impl ActHistory {
    /// From an instant until the first durable block.
    pub fn durable_after(&self, instant: Duration) -> Option<Duration> {
        let later = self.durable.iter().filter_map(|(_, at)| at.checked_sub(instant));
        later.min()
    }

    /// `counts_from` is when an act that was acknowledged at an instant must begin to count.
    pub fn findings(
        &self,
        checks: &[ObservedCheck],
        counts_from: impl Fn(&Act) -> Duration,
    ) -> ActFindings {
        let mut longest = ActKind::ALL.map(|kind| (kind.name(), Duration::ZERO));
        let mut observed = vec![false; self.acts.len()];
        let mut blocked_passed = 0;
        let mut worst = (Duration::ZERO, String::new());
        let answered =
            |check: &&ObservedCheck| check.caller == CallerKind::Act && check.status == 200;
        for check in checks.iter().filter(answered) {
            let act = &self.acts[check.key];
            observed[check.key] = true;
            if check.allowed == act.allows {
                continue;
            }
            let late = check.sent.saturating_sub(counts_from(act));
            let kind = &mut longest[ActKind::ALL.iter().position(|k| *k == act.kind).unwrap()].1;
            *kind = late.max(*kind);
            if late > worst.0 {
                let Act { policy, customer, node, .. } = act;
                let what =
                    format!("{customer} of {policy}, by node {node}, on node {}", check.node);
                worst = (late, what);
            }
            blocked_passed += usize::from(check.allowed && late > Duration::from_secs(1));
        }
        ActFindings {
            obeyed_after: longest.to_vec(),
            open: self.open,
            refused: self.refused,
            longest_wait: self.longest_wait,
            worst: worst.1,
            unobserved: observed.iter().filter(|one| !**one).count(),
            blocked_passed,
        }
    }
}

impl ActFindings {
    /// The longest time of any kind.
    pub fn longest(&self) -> Duration {
        self.obeyed_after.iter().map(|(_, time)| *time).max().unwrap_or_default()
    }

    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "refused": self.refused,
            "longest_wait_ms": self.longest_wait.as_millis() as u64,
            "open": self.open,
            "blocked_passed": self.blocked_passed,
        });
        for (name, time) in &self.obeyed_after {
            json[format!("{}_ms", name.replace(' ', "_"))] = json!(time.as_millis() as u64);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(kind: ActKind, allows: bool) -> Act {
        let customer = "a".to_owned();
        let acknowledged = Duration::from_millis(100);
        Act { kind, policy: "guard", customer, allows, acknowledged, node: 0, round: 0 }
    }

    fn answer(key: usize, at: u64, allowed: bool) -> ObservedCheck {
        let at = Duration::from_millis(at);
        let caller = CallerKind::Act;
        let node = 0;
        let degraded = false;
        ObservedCheck { caller, node, key, sent: at, received: at, status: 200, allowed, degraded }
    }

    #[test]
    fn the_last_answer_that_does_not_obey_counts() {
        let acts = vec![act(ActKind::Block, false), act(ActKind::Release, true)];
        let history = ActHistory { acts, ..ActHistory::default() };
        let checks = [
            answer(0, 150, true),
            answer(0, 1_300, true),
            answer(0, 1_400, false),
            answer(1, 200, false),
        ];
        let found = history.findings(&checks, |act| act.acknowledged);
        assert_eq!(found.longest(), Duration::from_millis(1_200));
        assert_eq!((found.blocked_passed, found.unobserved), (1, 0));
        let json = found.to_json();
        assert_eq!((&json["block_ms"], &json["release_ms"]), (&json!(1_200), &json!(100)));
        let later = history.findings(&checks[..1], |_| Duration::from_millis(150));
        assert_eq!((later.longest(), later.unobserved), (Duration::ZERO, 1));
        let durable = [100, 900, 700].map(|at| (String::new(), Duration::from_millis(at)));
        let history = ActHistory { durable: durable.to_vec(), ..ActHistory::default() };
        let after = |at| history.durable_after(Duration::from_millis(at));
        assert_eq!(after(500), Some(Duration::from_millis(200)));
        assert_eq!(after(901), None);
    }
}
