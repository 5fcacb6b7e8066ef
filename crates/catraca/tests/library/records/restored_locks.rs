//! Locks when an older backup is restored: fences never repeat, and leases that are not in the
//! backup are waited for.

use std::fs;

use catraca::records::{
    Record, RecordKind, RecordedLock, Records, back_up, restore_backup, restore_backup_over,
};
use catraca::{Clock, Span, SystemClock, Time};
use catraca_core::lock::LeaseKey;
use catraca_core::lock::persistence::{LockWrite, PersistedFence, PersistedLease};
use catraca_core::lock::reply::LeaseState;

use super::helpers::{TestDatabase, secs, write};
use super::test_database::query_column;

const AHEAD: Span = Span::from_secs(600);

fn lock_record(write: LockWrite) -> Record {
    Record::automatic(Time::ZERO, RecordKind::Lock(Box::new(write)))
}

fn fence(namespace: &str, ceiling: i64, longest: i64) -> Record {
    let persisted = PersistedFence { ceiling, longest: secs(longest), left: None };
    lock_record(LockWrite::Fence(namespace.into(), persisted))
}

fn lease(number: u8, state: LeaseState, ttl: i64) -> Record {
    let persisted = PersistedLease {
        key: LeaseKey::from_bytes([number; 16]),
        tenant: None,
        kind: "payment".into(),
        names: vec![format!("order-{number}").into()],
        range: None,
        fence: i64::from(number),
        version: 1,
        label: None,
        meta: None,
        acquired_at: Time::ZERO,
        expires_at: Time::ZERO.after(secs(ttl)),
        hold_until: Time::FOREVER,
        ttl: secs(ttl),
        state,
        request: None,
    };
    lock_record(LockWrite::Keep("a".into(), Box::new(persisted)))
}

fn now() -> i64 {
    SystemClock::new().now().micros()
}

/// What a start reads: the fences of namespaces, and the fences of leases.
fn read_locks(records: &Records) -> (Vec<(String, PersistedFence)>, Vec<i64>) {
    let mut fences = Vec::new();
    let mut leases = Vec::new();
    let visit = |persisted| match persisted {
        RecordedLock::Fence(namespace, persisted) => fences.push((namespace, persisted)),
        RecordedLock::Lease(_, lease) => leases.push(lease.fence),
        RecordedLock::Version(..) => {}
    };
    records.locks(visit).unwrap();
    fences.sort_by(|one, other| one.0.cmp(&other.0));
    leases.sort_unstable();
    (fences, leases)
}

/// Records of a process killed some time after a backup: the newest acts are only in the WAL.
fn killed_after_backup(ahead: i64) -> TestDatabase {
    let database = TestDatabase::new();
    let records = database.open();
    let first = vec![
        fence("a", 5, 30),
        lease(1, LeaseState::Held, 40),
        lease(2, LeaseState::Held, 40),
        lease(3, LeaseState::Confirmed, 0),
    ];
    write(&records, first);
    back_up(&database.path(), &database.file("b1.db")).unwrap();
    let ended = LockWrite::Drop("a".into(), LeaseKey::from_bytes([1; 16]));
    let later = vec![
        fence("a", ahead, 10),
        fence("b", 7, 60),
        lock_record(ended),
        lease(4, LeaseState::Held, 90),
    ];
    write(&records, later);
    let log = fs::read(database.file("catraca.db-wal")).unwrap();
    records.close();
    fs::write(database.file("catraca.db-wal"), log).unwrap();
    database
}

#[test]
fn numbers_and_waits_are_the_highest_of_both() {
    let ahead = now() + 2 * AHEAD.micros();
    let database = killed_after_backup(ahead);
    let log = fs::read(database.file("catraca.db-wal")).unwrap();
    let before = now();
    let done = restore_backup_over(&database.file("b1.db"), &database.path()).unwrap();
    assert_eq!(done.locks_wait, secs(90), "the lease is only in the replaced records");
    let old = done.old.unwrap();
    assert_eq!(
        fs::read(database.file("catraca.db.old-wal")).unwrap(),
        log,
        "the replaced files are unchanged"
    );
    assert_eq!(
        query_column::<i64>(&old, "SELECT ceiling FROM fences WHERE namespace = 'a'"),
        [ahead]
    );
    let (fences, leases) = read_locks(&database.open());
    let [(a, first), (b, second)] = &fences[..] else { panic!("{fences:?}") };
    assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
    assert_eq!(*first, PersistedFence { ceiling: ahead, longest: secs(90), left: None });
    assert_eq!((second.longest, second.left), (secs(60), None));
    assert!(second.ceiling >= before + AHEAD.micros(), "{second:?}");
    // A lease that ended after the backup is not restored; a lease granted after it is waited for.
    assert_eq!(leases, [2, 3]);
}

#[test]
fn without_records_to_replace_numbers_go_on_above_what_a_crash_may_have_given_out() {
    let database = killed_after_backup(9);
    let other = TestDatabase::new();
    let before = now();
    let done = restore_backup(&database.file("b1.db"), &other.path()).unwrap();
    assert_eq!((done.old, done.locks_wait), (None, secs(40)));
    let (fences, leases) = read_locks(&other.open());
    let (_, persisted) = &fences[0];
    assert_eq!((fences.len(), persisted.longest, persisted.left), (1, secs(40), None));
    assert!(persisted.ceiling >= before + AHEAD.micros(), "{persisted:?}");
    assert_eq!(leases, [1, 2, 3], "which of them have ended is unknown");
}

/// Damaged records are a reason to restore a backup, so they must not prevent it.
#[test]
fn records_that_cannot_be_read_are_replaced_all_the_same() {
    let database = killed_after_backup(9);
    fs::remove_file(database.file("catraca.db-wal")).unwrap();
    let noise = b"not a database ".repeat(1_000);
    fs::write(database.path(), &noise).unwrap();
    let done = restore_backup_over(&database.file("b1.db"), &database.path()).unwrap();
    assert_eq!(done.locks_wait, secs(40));
    assert_eq!(fs::read(done.old.unwrap()).unwrap(), noise);
    assert_eq!(read_locks(&database.open()).1, [1, 2, 3]);
}

#[test]
fn where_there_never_were_locks_nobody_waits() {
    let database = TestDatabase::new();
    database.open().close();
    let copy = database.file("b1.db");
    back_up(&database.path(), &copy).unwrap();
    let done = restore_backup_over(&copy, &database.path()).unwrap();
    assert_eq!(done.locks_wait, Span::ZERO);
}

/// A backup from before the first key must not turn authentication off.
#[test]
fn keys_stay_required_when_either_of_both_records_says_so() {
    let require = |required| vec![Record::automatic(Time::ZERO, RecordKind::RequireKeys(required))];
    for [backed_up, replaced] in [[false, true], [true, false], [false, false]] {
        let database = TestDatabase::new();
        let records = database.open();
        write(&records, require(backed_up));
        back_up(&database.path(), &database.file("b1.db")).unwrap();
        write(&records, require(replaced));
        records.close();
        restore_backup_over(&database.file("b1.db"), &database.path()).unwrap();
        let required = database.open().keys_required().unwrap();
        assert_eq!(required, backed_up || replaced, "{backed_up} {replaced}");
    }
}
