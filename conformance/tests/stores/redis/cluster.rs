//! A store over a cluster: sharding by group, migrated slots, and a lost primary.

use std::path::Path;
use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{SharedStore, Store, StoreError, StoreStatus, When};
use catraca_core::batch::{Batch, Reply, UnblockRow};
use catraca_core::digest::Key;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::{RedisCluster, until};
use catraca_testkit::resp::RespValue;

use super::helpers::{LONG_DEADLINE, check, connect, connect_with};

const SLACK: Duration = Duration::from_millis(250);
const FOLLOWED: Duration = Duration::from_secs(2);
const PRIMARIES: usize = 3;

/// Takes one unit of a group's key; returns the units left.
fn left(store: &impl Store, group: u16) -> Result<i64, StoreError> {
    let Batch::Check(mut asked) = check(1, 1_000) else { panic!("a check") };
    asked.rows[0].key = asked.rows[0].key.in_group(group);
    match store.apply(&Batch::Check(asked), When::Store)? {
        Reply::Check(reply) => Ok(reply.rows[0].free),
        other => panic!("not the reply of a check: {other:?}"),
    }
}

fn number(value: RespValue) -> usize {
    match value {
        RespValue::Int(number) => number as usize,
        other => panic!("not a number: {other:?}"),
    }
}

fn slot(cluster: &RedisCluster, group: u16) -> String {
    number(cluster.servers[0].command(&["CLUSTER", "KEYSLOT", &format!("{{{group:04x}}}")]))
        .to_string()
}

/// The primary that has a group's key.
fn owner(cluster: &RedisCluster, group: u16) -> usize {
    let slot = slot(cluster, group);
    let has = |server: &usize| {
        let count = cluster.servers[*server].command(&["CLUSTER", "COUNTKEYSINSLOT", &slot]);
        cluster.is_primary(*server) && number(count) > 0
    };
    (0..cluster.servers.len()).find(has).expect("a primary has the key")
}

/// `redis-cli` decides which of the six servers is a replica of which.
#[test]
fn the_script_of_the_deployment_makes_a_cluster_that_a_node_uses() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/redis-cluster/create.sh");
    let Some(cluster) = RedisCluster::start_by(&script) else { return };
    let store = connect(&cluster.url());
    (0..60).for_each(|group| assert_eq!(left(&store, group).unwrap(), 999));
    let has_keys = |server: &usize| number(cluster.servers[*server].command(&["DBSIZE"])) > 0;
    let primaries = (0..2 * PRIMARIES).filter(|server| cluster.is_primary(*server));
    assert_eq!(primaries.filter(has_keys).count(), PRIMARIES);
}

#[test]
fn groups_spread_over_the_primaries_and_batches_over_groups_are_whole() {
    let Some(cluster) = RedisCluster::start() else { return };
    let store = connect(&cluster.url());
    assert!(store.store().is_sharded());
    (0..60).for_each(|group| assert_eq!(left(&store, group).unwrap(), 999));
    (0..60).for_each(|group| assert_eq!(left(&store, group).unwrap(), 998));
    let sizes = (0..PRIMARIES).map(|server| number(cluster.servers[server].command(&["DBSIZE"])));
    let sizes: Vec<usize> = sizes.collect();
    println!("keys by primary: {sizes:?}");
    assert!(sizes.iter().all(|size| *size > 5), "{sizes:?}");
    let keys: Vec<Key> = (0..60).map(|group| Key::from_bytes([1; 16]).in_group(group)).collect();
    let reset = store.apply(&Batch::Reset(keys.clone()), When::Store).unwrap();
    assert!(matches!(reset, Reply::Reset(_)));
    let rows = keys.into_iter().map(UnblockRow::from).collect();
    assert_eq!(
        store.apply(&Batch::Unblock(rows), When::Store).unwrap(),
        Reply::Unblock(vec![false; 60])
    );
    (0..60).for_each(|group| assert_eq!(left(&store, group).unwrap(), 999));
    let statuses = || -> Vec<StoreStatus> {
        let reports = store.handle().block_on(store.store().primary_statuses());
        let mut reports: Vec<_> =
            reports.into_iter().map(|report| (report.primary, report.status.unwrap())).collect();
        reports.sort_by_key(|(primary, _)| *primary);
        reports.into_iter().map(|(_, status)| status).collect()
    };
    let before = statuses();
    assert_eq!(before.len(), PRIMARIES);
    let has_changed = |after: Vec<StoreStatus>| -> Vec<bool> {
        let pairs = before.iter().zip(after);
        pairs.map(|(before, after)| before.incarnation != after.incarnation).collect()
    };
    assert_eq!(has_changed(statuses()), [false; 3]);
    cluster.servers[1].command(&["FLUSHALL"]);
    let changed = has_changed(statuses());
    assert_eq!(changed.iter().filter(|changed| **changed).count(), 1, "one was emptied");
    store.handle().block_on(store.store().publish_change()).unwrap();
    assert!(statuses().iter().all(|status| status.changes == before[0].changes + 1));
}

/// Regression: a map that could not be read again was silent.
#[test]
fn a_slot_map_that_cannot_be_read_again_is_reported() {
    let Some(cluster) = RedisCluster::start() else { return };
    let store = connect(&cluster.url());
    assert_eq!(store.store().background_error(), None);
    let allow = |rule: &str| {
        for server in &cluster.servers {
            server.command(&["ACL", "SETUSER", "default", rule]);
        }
    };
    allow("-cluster");
    until("the map is out of date", || {
        store.store().background_error().is_some_and(|why| why.contains("slot map"))
    });
    assert_eq!(left(&store, 7).unwrap(), 999, "calls work nevertheless");
    allow("+cluster");
    until("the map is read again", || store.store().background_error().is_none());
}

#[test]
fn moved_keys_are_followed_without_an_error() {
    let Some(cluster) = RedisCluster::start() else { return };
    let store = connect(&cluster.url());
    let group = 7;
    assert_eq!(left(&store, group).unwrap(), 999);
    let from = owner(&cluster, group);
    let to = (from + 1) % PRIMARIES;
    let slot = slot(&cluster, group);
    cluster.begin_move(&slot, from, to);
    cluster.move_keys(&slot, from, to);
    // The source redirects a call with a single key to the target (ASK).
    let key = Key::from_bytes([1; 16]).in_group(group);
    let freed = store.apply(&Batch::Unblock(vec![key.into()]), When::Store);
    assert_eq!(freed.unwrap(), Reply::Unblock(vec![false]));
    cluster.end_move(&slot, to);
    assert_eq!(left(&store, group).unwrap(), 998, "no charge was lost by the migration");
    assert_eq!(owner(&cluster, group), to);
}

#[test]
fn a_primary_less_disturbs_no_other_and_its_replica_takes_over() {
    let Some(mut cluster) = RedisCluster::start() else { return };
    let store: BlockingStore<RedisStore> =
        connect_with(&cluster.url(), RedisOptions::default()).unwrap();
    let spread = |server| {
        (0..200).find(|group| left(&store, *group).is_ok() && owner(&cluster, *group) == server)
    };
    let lost = spread(0).expect("a group of it");
    let kept = spread(1).expect("a group of it");
    let wait = RespValue::Int(1);
    until("the replica has it all", || cluster.servers[0].command(&["WAIT", "1", "1000"]) == wait);
    cluster.servers[0].kill();
    let machine = PauseWatch::start();
    let mut others = 0;
    let mut asked = 0;
    until("the replica is primary", || {
        let call = Instant::now();
        let _ = left(&store, lost);
        let took = call.elapsed();
        assert!(took < SLACK + machine.added_to_a_call(), "a call took {took:?}");
        asked += 1;
        others += usize::from(left(&store, kept).is_err());
        cluster.is_primary(PRIMARIES)
    });
    let took = until("calls pass", || left(&store, lost).is_ok());
    println!("followed {took:?} after the replica took over; {others} of {asked} others failed");
    assert!(others * 20 <= asked, "{others} of {asked} calls to another primary failed");
    assert!(took < FOLLOWED, "{took:?}");
    let calm = connect_with(
        &cluster.url(),
        RedisOptions { deadline: LONG_DEADLINE, ..Default::default() },
    );
    let calm = calm.unwrap();
    // The server that gave the map may learn of the new primary later than others.
    until("the new connection finds the keys", || left(&calm, lost).is_ok());
    assert!(left(&calm, lost).unwrap() < 999, "what was counted is still counted");
    cluster.servers[0].restart();
}
