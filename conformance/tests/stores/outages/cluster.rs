//! F20 to F23: a cluster that loses, moves, gains or gives up primaries while calls continue. What
//! happens to one primary concerns its own keys alone.

use std::time::{Duration, Instant};

use catraca::redis::RedisOptions;
use catraca_testkit::redis::{RedisCluster, until};
use catraca_testkit::resp::RespValue;

use super::cluster_load::{
    Caller, ClusterLoad, LONG_DEADLINE, groups_on, move_all, slot_of, used_groups,
};
use super::helpers::{Node, is_deep};

const PRIMARIES: usize = 3;
const CALLERS: usize = 24;
/// The maximum time from the promotion of a replica until its keys are decided by it.
const FOLLOWED: Duration = Duration::from_secs(5);

fn node_over(cluster: &RedisCluster) -> Node {
    let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
    Node::with(&cluster.url(), 1, options)
}

/// Keys of the other primaries are never degraded and wait for nothing; leases of kinds with a
/// grace are refused on the slots of the failed primary alone.
#[test]
fn f20_a_killed_primary_degrades_its_own_keys_alone() {
    let rounds = if is_deep() { 3 } else { 1 };
    for round in 0..rounds {
        let Some(mut cluster) = RedisCluster::start() else { return };
        let node = node_over(&cluster);
        let load = ClusterLoad::start(&cluster, &node.app, &node.runtime, CALLERS);
        load.wait_for_answers(20, |_| true);
        let killed = round % PRIMARIES;
        let lost_groups = groups_on(&cluster, killed);
        let is_lost = |caller: &Caller| lost_groups.contains(&caller.group);
        let is_kept = |caller: &Caller| !is_lost(caller);
        let lost_count = load.callers.iter().filter(|caller| is_lost(caller)).count();
        assert!((1..CALLERS).contains(&lost_count), "{lost_count} callers use the primary");
        let name = format!("127.0.0.1:{}", cluster.servers[killed].port());
        cluster.servers[killed].kill();
        until("the primary is named", || {
            let stats = node.stats();
            let names: Vec<_> =
                stats.unavailable.iter().filter_map(|primary| primary.name.as_ref()).collect();
            assert!(names.is_empty() || names == [&name], "{names:?}");
            !names.is_empty()
        });
        assert!(!node.stats().up && node.stats().error.unwrap().contains(&name));
        until("the replica is primary", || cluster.is_primary(PRIMARIES + killed));
        let promoted = Instant::now();
        until("the whole store is in use", || node.stats().up);
        let took = promoted.elapsed();
        let degraded_lost = load.sum(|seen| &seen.degraded, is_lost);
        load.wait_for_answers(20, |_| true);
        let degraded = load.sum(|seen| &seen.degraded, is_kept);
        let refused = load.sum(|seen| &seen.refused, is_kept);
        let answers = load.sum(|seen| &seen.answers, is_kept);
        println!(
            "F20 {name} killed: its keys degraded {degraded_lost} times and back {took:.1?} after \
             the promotion; {answers} calls about other keys: {degraded} degraded, {refused} locks \
             refused"
        );
        assert_eq!((degraded, refused), (0, 0), "keys of other primaries");
        assert!(degraded_lost > 0, "its own keys cannot be decided by a dead server");
        assert!(took < FOLLOWED, "{took:?}");
        assert_grace_of_lost_slots(&load, &is_lost);
    }
}

/// After the failover, every namespace of the failed primary waits for the grace.
fn assert_grace_of_lost_slots(load: &ClusterLoad, is_lost: &impl Fn(&Caller) -> bool) {
    let granted = |caller: &Caller| caller.observed.count(|seen| &seen.granted);
    let locks = |caller: &&Caller| granted(caller) > 0;
    let lost: Vec<&Caller> =
        load.callers.iter().filter(locks).filter(|caller| is_lost(caller)).collect();
    let before: Vec<u64> = lost.iter().map(|caller| granted(caller)).collect();
    load.wait_for_answers(20, is_lost);
    for (caller, before) in lost.into_iter().zip(before) {
        assert_eq!(granted(caller), before, "{} was granted a lock", caller.namespace);
        assert!(caller.observed.count(|seen| &seen.refused) > 0);
    }
}

/// A moved slot is no failover, and a primary that joins or leaves has lost nothing.
#[test]
fn f21_a_reshard_and_a_primary_that_joins_and_leaves_disturb_no_caller() {
    let Some(mut cluster) = RedisCluster::start() else { return };
    let node = node_over(&cluster);
    let load = ClusterLoad::start(&cluster, &node.app, &node.runtime, CALLERS);
    load.wait_for_answers(20, |_| true);
    let rounds = if is_deep() { 10 } else { 1 };
    let mut moved = 0;
    for _ in 0..rounds {
        for from in 0..PRIMARIES {
            moved += move_all(&cluster, from, (from + 1) % PRIMARIES);
            load.wait_for_answers(5, |_| true);
        }
    }
    assert_undisturbed(&node, &load, &format!("F21 reshard of {moved} slots"));
    let added = cluster.add_primary();
    for from in 0..PRIMARIES {
        moved += move_all(&cluster, from, added);
        load.wait_for_answers(5, |_| true);
    }
    let has_name = |name: &str| node.stats().primaries.iter().any(|(other, _)| other == name);
    let name = format!("127.0.0.1:{}", cluster.servers[added].port());
    until("the new primary is known", || has_name(&name));
    assert_undisturbed(&node, &load, "F21 a primary joined");
    moved += move_all(&cluster, added, 0);
    load.wait_for_answers(5, |_| true);
    cluster.remove(added);
    until("the primary has left", || !has_name(&name));
    cluster.servers[added].kill();
    load.wait_for_answers(20, |_| true);
    assert_undisturbed(&node, &load, &format!("F21 it left, {moved} slots moved"));
}

fn assert_undisturbed(node: &Node, load: &ClusterLoad, what: &str) {
    let count = |counter: fn(&super::cluster_load::Observed) -> &_| load.sum(counter, |_| true);
    let answers = count(|seen| &seen.answers);
    let degraded = count(|seen| &seen.degraded);
    let denied = count(|seen| &seen.denied);
    let refused = count(|seen| &seen.refused);
    let opened = node.stats().breaker_opened;
    println!(
        "{what}: {answers} answers, {degraded} degraded, {denied} denied, {refused} locks refused, \
         {opened} breakers opened"
    );
    assert_eq!((degraded, denied, refused, opened), (0, 0, 0, 0), "{:?}", node.stats());
}

/// The slot map is read again when a connection goes down, and not only 2 s after the last time: a
/// key that came back from a primary which has left and ended is decided by the store again. Of
/// several rounds the shortest counts, because a busy machine may delay some.
#[test]
fn f23_a_primary_that_ends_right_after_it_left_degrades_no_key_until_the_next_refresh() {
    const ROUNDS: usize = 3;
    const WELL_BEFORE_THE_REFRESH: Duration = Duration::from_secs(1);
    let Some(mut cluster) = RedisCluster::start() else { return };
    let node = node_over(&cluster);
    let before = used_groups(&cluster);
    let is_degraded = || node.check("local", "192.0.2.1").degraded;
    assert!(!is_degraded());
    let group = used_groups(&cluster).difference(&before).next().cloned().unwrap();
    let home = (0..PRIMARIES).find(|one| groups_on(&cluster, *one).contains(&group)).unwrap();
    let slot = slot_of(&cluster, &group);
    let mut shortest = Duration::MAX;
    for _ in 0..ROUNDS {
        let added = cluster.add_primary();
        let name = format!("127.0.0.1:{}", cluster.servers[added].port());
        cluster.move_slot(slot, home, added);
        until("the new primary is known", || {
            is_degraded();
            node.stats().primaries.iter().any(|(other, _)| *other == name)
        });
        // The node does not learn that the slot moves back: nothing calls meanwhile.
        cluster.move_slot(slot, added, home);
        cluster.remove(added);
        drop(cluster.servers.pop());
        let took = until("the store decides", || !is_degraded());
        println!("F23 {name} left and ended: its key was degraded for {took:.1?}");
        shortest = shortest.min(took);
    }
    assert!(shortest < WELL_BEFORE_THE_REFRESH, "{shortest:?}");
}

/// A server that requires full coverage is reported, with the remedy.
#[test]
fn f22_full_coverage_is_reported() {
    let Some(cluster) = RedisCluster::start() else { return };
    assert_eq!(node_over(&cluster).stats().config_notice, None);
    for server in &cluster.servers {
        let set = ["CONFIG", "SET", "cluster-require-full-coverage", "yes"];
        assert_eq!(server.command(&set), RespValue::Bytes(b"OK".to_vec()));
    }
    let notice = node_over(&cluster).stats().config_notice.unwrap();
    assert!(notice.contains("CONFIG SET cluster-require-full-coverage no"), "{notice}");
}

/// So is one that does not let the user of the URL read the setting.
#[test]
fn f22_full_coverage_that_cannot_be_read_is_reported() {
    let Some(cluster) = RedisCluster::start() else { return };
    for server in &cluster.servers {
        let forbid = ["ACL", "SETUSER", "default", "-config"];
        assert_eq!(server.command(&forbid), RespValue::Bytes(b"OK".to_vec()));
    }
    let notice = node_over(&cluster).stats().config_notice.unwrap();
    assert!(notice.contains("allow `CONFIG GET` to the user of the URL"), "{notice}");
}
