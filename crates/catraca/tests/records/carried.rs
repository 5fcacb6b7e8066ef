//! Locks when an older backup is put back: numbers never repeat, and what the backup has not heard
//! of is waited for.

use std::fs;

use catraca::records::{
    Record, RecordKind, RecordedLock, Records, back_up, restore_backup, restore_backup_over,
};
use catraca::{Clock, Span, SystemClock, Time};
use catraca_core::lock::LeaseKey;
use catraca_core::lock::persistence::{LockWrite, PersistedFence, PersistedLease};
use catraca_core::lock::reply::LeaseState;

use crate::helpers::{Folder, secs, write};
use crate::place::ask;

const AHEAD: Span = Span::from_secs(600);

fn deed(deed: LockWrite) -> Record {
    Record::automatic(Time::ZERO, RecordKind::Lock(Box::new(deed)))
}

fn fence(namespace: &str, ceiling: i64, longest: i64) -> Record {
    let kept = PersistedFence { ceiling, longest: secs(longest), left: None };
    deed(LockWrite::Fence(namespace.into(), kept))
}

fn lease(number: u8, state: LeaseState, ttl: i64) -> Record {
    let kept = PersistedLease {
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
    deed(LockWrite::Keep("a".into(), Box::new(kept)))
}

fn now() -> i64 {
    SystemClock::new().now().micros()
}

/// What a start would read: fences, and the numbers of leases.
fn read(records: &Records) -> (Vec<(String, PersistedFence)>, Vec<i64>) {
    let mut fences = Vec::new();
    let mut leases = Vec::new();
    let visit = |kept| match kept {
        RecordedLock::Fence(namespace, kept) => fences.push((namespace, kept)),
        RecordedLock::Lease(_, lease) => leases.push(lease.fence),
        RecordedLock::Version(..) => {}
    };
    records.locks(visit).unwrap();
    fences.sort_by(|one, other| one.0.cmp(&other.0));
    leases.sort_unstable();
    (fences, leases)
}

/// Records that were killed some time after a backup of them was made: the newest is in the log.
fn killed(ahead: i64) -> Folder {
    let folder = Folder::new();
    let records = folder.open();
    let first = vec![
        fence("a", 5, 30),
        lease(1, LeaseState::Held, 40),
        lease(2, LeaseState::Held, 40),
        lease(3, LeaseState::Confirmed, 0),
    ];
    write(&records, first);
    back_up(&folder.database(), &folder.file("b1.db")).unwrap();
    let ended = LockWrite::Drop("a".into(), LeaseKey::from_bytes([1; 16]));
    let later =
        vec![fence("a", ahead, 10), fence("b", 7, 60), deed(ended), lease(4, LeaseState::Held, 90)];
    write(&records, later);
    let log = fs::read(folder.file("catraca.db-wal")).unwrap();
    records.close();
    fs::write(folder.file("catraca.db-wal"), log).unwrap();
    folder
}

#[test]
fn numbers_and_waits_are_the_highest_of_both() {
    let ahead = now() + 2 * AHEAD.micros();
    let folder = killed(ahead);
    let log = fs::read(folder.file("catraca.db-wal")).unwrap();
    let before = now();
    let done = restore_backup_over(&folder.file("b1.db"), &folder.database()).unwrap();
    assert_eq!(done.locks_wait, secs(90), "a lease that only the replaced ones knew");
    let old = done.old.unwrap();
    assert_eq!(fs::read(folder.file("catraca.db.old-wal")).unwrap(), log, "they are as they were");
    assert_eq!(ask::<i64>(&old, "SELECT ceiling FROM fences WHERE namespace = 'a'"), [ahead]);
    let (fences, leases) = read(&folder.open());
    let [(a, first), (b, second)] = &fences[..] else { panic!("{fences:?}") };
    assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
    assert_eq!(*first, PersistedFence { ceiling: ahead, longest: secs(90), left: None });
    assert_eq!((second.longest, second.left), (secs(60), None));
    assert!(second.ceiling >= before + AHEAD.micros(), "{second:?}");
    // One that has ended since does not come back; one that was made since is waited for.
    assert_eq!(leases, [2, 3]);
}

#[test]
fn without_records_to_replace_numbers_go_on_above_what_a_crash_may_have_given_out() {
    let folder = killed(9);
    let other = Folder::new();
    let before = now();
    let done = restore_backup(&folder.file("b1.db"), &other.database()).unwrap();
    assert_eq!((done.old, done.locks_wait), (None, secs(40)));
    let (fences, leases) = read(&other.open());
    let (_, kept) = &fences[0];
    assert_eq!((fences.len(), kept.longest, kept.left), (1, secs(40), None));
    assert!(kept.ceiling >= before + AHEAD.micros(), "{kept:?}");
    assert_eq!(leases, [1, 2, 3], "nobody knows which have ended");
}

/// Damaged records are why somebody brings a backup, so they must not be in its way.
#[test]
fn records_that_cannot_be_read_are_replaced_all_the_same() {
    let folder = killed(9);
    fs::remove_file(folder.file("catraca.db-wal")).unwrap();
    let noise = b"not a database ".repeat(1_000);
    fs::write(folder.database(), &noise).unwrap();
    let done = restore_backup_over(&folder.file("b1.db"), &folder.database()).unwrap();
    assert_eq!(done.locks_wait, secs(40));
    assert_eq!(fs::read(done.old.unwrap()).unwrap(), noise);
    assert_eq!(read(&folder.open()).1, [1, 2, 3]);
}

#[test]
fn where_there_never_were_locks_nobody_waits() {
    let folder = Folder::new();
    folder.open().close();
    let copy = folder.file("b1.db");
    back_up(&folder.database(), &copy).unwrap();
    let done = restore_backup_over(&copy, &folder.database()).unwrap();
    assert_eq!(done.locks_wait, Span::ZERO);
}

/// A backup from before the first key must not turn authentication off.
#[test]
fn keys_stay_required_when_either_of_both_records_says_so() {
    let require = |required| vec![Record::automatic(Time::ZERO, RecordKind::RequireKeys(required))];
    for [backed_up, replaced] in [[false, true], [true, false], [false, false]] {
        let folder = Folder::new();
        let records = folder.open();
        write(&records, require(backed_up));
        back_up(&folder.database(), &folder.file("b1.db")).unwrap();
        write(&records, require(replaced));
        records.close();
        restore_backup_over(&folder.file("b1.db"), &folder.database()).unwrap();
        let required = folder.open().keys_required().unwrap();
        assert_eq!(required, backed_up || replaced, "{backed_up} {replaced}");
    }
}
