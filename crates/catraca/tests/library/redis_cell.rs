//! Decisions of buckets beside recorded replies of redis-cell's `CL.THROTTLE`, for programs that
//! move from it.

use std::collections::BTreeMap;
use std::time::Duration;

use catraca::{Catalog, Check, Decision, Engine, ManualClock, Policy};

const REPLIES: &str = include_str!("redis_cell.txt");

/// `CL.THROTTLE key max_burst count period quantity`, several times.
struct Throttle<'a> {
    times: usize,
    key: &'a str,
    max_burst: u32,
    count: u32,
    period: u64,
    quantity: i64,
}

impl<'a> Throttle<'a> {
    fn parse(call: &'a str) -> Self {
        let mut words = call.split_whitespace();
        let mut word = || words.next().unwrap();
        Self {
            times: word().parse().unwrap(),
            key: word(),
            max_burst: word().parse().unwrap(),
            count: word().parse().unwrap(),
            period: word().parse().unwrap(),
            quantity: word().parse().unwrap(),
        }
    }

    /// The limit as a policy: the burst comes on top of the first unit.
    fn policy(&self) -> Policy {
        let period = Duration::from_secs(self.period);
        let size = i64::from(self.max_burst) + 1;
        Policy::new(self.key).by(["user"]).bucket(size, self.count.into(), period)
    }
}

/// The decision as redis-cell would write it.
fn reply(decision: &Decision) -> [i64; 5] {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap();
    [
        i64::from(!decision.allowed),
        decision.limit.unwrap(),
        decision.remaining.unwrap(),
        decision.retry_after().map_or(-1, seconds),
        seconds(decision.reset_after().unwrap()),
    ]
}

#[test]
fn decisions_equal_the_recorded_replies_of_redis_cell() {
    let lines = REPLIES.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.map(|line| line.split_once(" | ").unwrap());
    let rows: Vec<_> = rows.map(|(call, reply)| (Throttle::parse(call), reply)).collect();
    let policies: BTreeMap<_, _> = rows.iter().map(|(call, _)| (call.key, call.policy())).collect();
    let catalog = policies.into_values().fold(Catalog::builder(), |all, policy| all.policy(policy));
    let engine = Engine::builder(catalog.build().unwrap()).clock(ManualClock::default()).build();

    let mut compared = 0;
    for (number, (call, expected)) in rows.iter().enumerate() {
        let check = Check::new(call.key, [("user", call.key)]).cost(call.quantity);
        let decisions = (0..call.times).map(|_| engine.check(&check).unwrap());
        let last = decisions.last().unwrap();
        if *expected != "-" {
            let expected: Vec<i64> =
                expected.split_whitespace().map(|word| word.parse().unwrap()).collect();
            assert_eq!(reply(&last)[..], expected, "reply {number}, to {}", call.key);
            compared += 1;
        }
    }
    assert_eq!(compared, 9);
}
