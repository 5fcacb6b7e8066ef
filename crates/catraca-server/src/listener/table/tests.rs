//! Which idle connection is closed when a limit is reached.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A connection that is idle since a tick, or busy.
#[derive(Debug)]
struct Fake {
    name: &'static str,
    since: AtomicU64,
}

const BUSY: u64 = u64::MAX;

impl Evictable for Fake {
    fn idle_since(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != BUSY)
    }
}

fn peer(last: u8) -> Peer {
    Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
}

const PROXY: Peer = None;

#[derive(Default)]
struct Fixture {
    table: ConnectionTable<Fake>,
    all: Vec<(Peer, u64, Arc<Fake>)>,
}

impl Fixture {
    fn open(&mut self, peer: Peer, name: &'static str, since: u64) -> Arc<Fake> {
        let fake = Arc::new(Fake { name, since: AtomicU64::new(since) });
        let id = self.table.insert(peer, Arc::clone(&fake));
        self.all.push((peer, id, Arc::clone(&fake)));
        fake
    }

    /// The connection that is closed for a newcomer, or the limit that refuses it.
    fn room(&mut self, peer: Peer, total: usize, per_address: usize) -> &'static str {
        match self.table.make_room(peer, total, Some(per_address)) {
            Ok(None) => "free",
            Ok(Some((_, closed))) => closed.name,
            Err(ConnectionLimit::Total) => "total",
            Err(ConnectionLimit::PerAddress) => "per address",
        }
    }
}

#[test]
fn the_address_with_the_most_connections_gives_way_and_its_longest_idle_one_first() {
    let mut fixture = Fixture::default();
    fixture.open(peer(1), "lone and oldest", 1);
    fixture.open(peer(2), "second", 5);
    fixture.open(peer(2), "first", 4);
    fixture.open(peer(2), "busy", BUSY);
    assert_eq!(fixture.room(peer(3), 5, 9), "free");
    assert_eq!(fixture.room(peer(3), 4, 9), "first");
    fixture.open(peer(3), "newcomer", 6);
    assert_eq!(fixture.room(peer(4), 4, 9), "second");
    fixture.open(peer(4), "another", 7);
    // All have one each, so the longest idle.
    assert_eq!(fixture.room(peer(5), 4, 9), "lone and oldest");
}

#[test]
fn trusted_proxies_have_no_cap_and_give_way_last() {
    let mut fixture = Fixture::default();
    fixture.open(PROXY, "proxy", 1);
    fixture.open(PROXY, "other proxy", 2);
    fixture.open(peer(1), "caller", 9);
    assert_eq!(fixture.room(PROXY, 4, 1), "free");
    assert_eq!(fixture.room(peer(2), 3, 1), "caller");
    assert_eq!(fixture.room(peer(2), 2, 1), "proxy");
}

#[test]
fn an_address_at_its_cap_closes_its_own_connections_alone() {
    let mut fixture = Fixture::default();
    fixture.open(peer(1), "of another", 1);
    let own = fixture.open(peer(2), "own", 8);
    fixture.open(peer(2), "busy", BUSY);
    own.since.store(BUSY, Ordering::Relaxed);
    assert_eq!(fixture.room(peer(2), 9, 2), "per address");
    assert_eq!(fixture.room(peer(1), 9, 2), "free");
    fixture.open(peer(3), "idle", 8);
    assert_eq!(fixture.room(peer(3), 9, 1), "idle");
}

#[test]
fn a_newcomer_is_refused_while_all_are_busy() {
    let mut fixture = Fixture::default();
    let one = fixture.open(peer(1), "one", BUSY);
    fixture.open(peer(2), "two", BUSY);
    assert_eq!(fixture.room(peer(3), 2, 2), "total");
    one.since.store(3, Ordering::Relaxed);
    // A scan that found nothing is repeated only after a pause of some microseconds.
    let closed = (0..1_000_000).map(|_| fixture.room(peer(3), 2, 2)).find(|room| *room != "total");
    assert_eq!(closed, Some("one"));
}

#[test]
fn a_candidate_that_became_busy_is_passed_over() {
    let mut fixture = Fixture::default();
    let many: Vec<_> = (0..640).map(|since| fixture.open(peer(1), "idle", since)).collect();
    assert_eq!(fixture.room(peer(2), 640, 640), "idle");
    assert_eq!(fixture.table.idle.candidates.len(), 10, "one scan serves the next ten");
    many[1].since.store(BUSY, Ordering::Relaxed);
    many[2].since.store(700, Ordering::Relaxed);
    fixture.open(peer(2), "newcomer", 701);
    let closed = fixture.table.make_room(peer(2), 640, Some(640)).unwrap().unwrap().1;
    assert!(Arc::ptr_eq(&closed, &many[3]));
}

#[test]
fn connections_that_are_closing_are_bounded_and_leave_no_trace() {
    let mut fixture = Fixture::default();
    for _ in 0..CLOSING_MAX + 2 {
        fixture.open(peer(1), "idle", 1);
    }
    for _ in 0..CLOSING_MAX {
        let open = fixture.table.open;
        assert_eq!(fixture.room(peer(2), open, open), "idle");
    }
    assert_eq!(fixture.room(peer(2), 2, 2), "total");
    assert_eq!(fixture.table.all().count(), CLOSING_MAX + 2);
    for (peer, id, _) in std::mem::take(&mut fixture.all) {
        fixture.table.remove(peer, id);
    }
    assert_eq!(
        (fixture.table.open, fixture.table.all().count(), fixture.table.peers.len()),
        (0, 0, 0)
    );
}

/// Regression: two addresses could take all connections, half each.
#[test]
fn by_default_each_address_leaves_half_of_the_rest_to_others() {
    let mut fixture = Fixture::default();
    let is_free =
        |fixture: &mut Fixture, peer| matches!(fixture.table.make_room(peer, 16, None), Ok(None));
    let mut counts = Vec::new();
    for number in 1..=4 {
        let mut count = 0;
        while is_free(&mut fixture, peer(number)) {
            fixture.open(peer(number), "busy", BUSY);
            count += 1;
        }
        counts.push(count);
    }
    assert_eq!(counts, [8, 4, 2, 1]);
    let refused = fixture.table.make_room(peer(1), 16, None);
    assert!(matches!(refused, Err(ConnectionLimit::PerAddress)), "{refused:?}");
    assert!(is_free(&mut fixture, peer(9)), "the last place");
    // Beyond its share an address replaces an idle connection of any address.
    fixture.all[0].2.since.store(3, Ordering::Relaxed);
    // A search that found none is not repeated for a short time.
    let mut attempts = (0..10_000_000).map(|_| fixture.table.make_room(peer(2), 16, None));
    let replaced = attempts.find_map(Result::ok).flatten();
    assert!(matches!(replaced, Some((ConnectionLimit::PerAddress, _))), "{replaced:?}");
    // Trusted proxies count only towards the total.
    assert!(is_free(&mut fixture, None));
}
