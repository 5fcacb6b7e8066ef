//! A million leases that are never released: their memory is free a minute after they expire, and a
//! namespace that has all of its leases takes none from another.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;

use catraca::core::lock::reply::AcquireReply;
use catraca::core::lock::requests::{Acquire, LeaseRequest};
use catraca::core::lock::{LEASES_MAX, VersionPolicy};
use catraca::locks::LockError;
use catraca::{Locks, ManualClock, Secret, Span, Time};

const LEASES: u32 = 1_000_000;

/// The resident memory of the process, in pages.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn acquire(locks: &Locks, namespace: &str, number: usize) -> Result<bool, LockError> {
    let key = locks.lease_id(namespace, None, None)?.key();
    let lease = LeaseRequest::new(key, Span::from_secs(300), Span::from_secs(300));
    let kind = "k".into();
    let keys = vec![number.to_string().into()];
    let request = Acquire { tenant: None, kind, keys, lease, policy: VersionPolicy::Opaque };
    let answer = locks.acquire(namespace, &request.validate().unwrap(), Span::ZERO).await?;
    Ok(matches!(answer.acquired, AcquireReply::Granted(_)))
}

async fn abandon(locks: &Locks, clock: &ManualClock) {
    for number in 0..LEASES as usize {
        assert!(acquire(locks, "n", number).await.unwrap());
        clock.advance(Span::from_micros(1));
    }
}

/// The bound of a hostile tenant: `LEASES_MAX` leases of its own namespace.
#[tokio::test]
async fn a_namespace_with_all_its_leases_takes_none_from_another() {
    let clock = ManualClock::at(Time::from_micros(1_700_000_000_000_000));
    let locks = Locks::in_memory(Arc::new(clock), &Secret::from_bytes([5; 32]));
    for number in 0..LEASES_MAX {
        assert!(acquire(&locks, "hostile", number).await.unwrap());
    }
    let refused = acquire(&locks, "hostile", LEASES_MAX).await.unwrap_err();
    println!("{LEASES_MAX} leases of one namespace; the next one: {refused}");
    assert!(refused.to_string().contains(&LEASES_MAX.to_string()), "{refused}");
    for number in 0..100 {
        assert!(acquire(&locks, "shop", number).await.unwrap());
    }
}

/// L30.
/// covers: 004-80
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
