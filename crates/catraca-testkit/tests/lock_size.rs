//! A million leases that are never released: their memory is free a minute after they expire.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;

use catraca::core::lock::VersionPolicy;
use catraca::core::lock::reply::AcquireReply;
use catraca::core::lock::requests::{Acquire, LeaseRequest};
use catraca::{Locks, ManualClock, Secret, Span, Time};

const LEASES: u32 = 1_000_000;

/// The resident memory of the process, in pages.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn abandon(locks: &Locks, clock: &ManualClock) {
    for number in 0..LEASES {
        let key = locks.lease_id("n", None, None).unwrap().key();
        let lease = LeaseRequest::new(key, Span::from_secs(300), Span::from_secs(300));
        let kind = "k".into();
        let keys = vec![number.to_string().into()];
        let request = Acquire { tenant: None, kind, keys, lease, policy: VersionPolicy::Opaque };
        let request = request.validate().unwrap();
        let answer = locks.acquire("n", &request, Span::ZERO).await.unwrap();
        assert!(matches!(answer.acquired, AcquireReply::Granted(_)));
        clock.advance(Span::from_micros(1));
    }
}

/// L30.
#[tokio::test]
async fn a_million_abandoned_leases_leave_nothing_behind() {
    let clock = ManualClock::at(Time::from_micros(1_700_000_000_000_000));
    let locks = Locks::in_memory(Arc::new(clock.clone()), &Secret::from_bytes([5; 32]));
    let mut most = Vec::new();
    for round in 1..=3 {
        abandon(&locks, &clock).await;
        most.push(resident());
        assert_eq!(locks.totals().unwrap().lease_entries, LEASES as usize);
        clock.advance(Span::from_secs(300));
        locks.expire().await;
        let all = locks.stats_of("n", None).await.unwrap().all;
        assert_eq!((all.active, all.expired), (0, u64::from(round * LEASES)));
        clock.advance(Span::from_secs(60));
        locks.expire().await;
        assert_eq!(locks.totals().unwrap().lease_entries, 0);
    }
    println!("pages at the peak of each round: {most:?}");
    assert!(most[2] < most[0] + most[0] / 5, "memory grows with every round: {most:?}");
}
