//! Concurrent changes of one list entry, fact or mode are recorded in the order in which they took
//! effect, so that a restart finds the state that decided last.

use std::sync::Arc;

use catraca::app::{FactMap, ListTargetText, NewListEntry};
use catraca::core::policy::Mode;
use catraca::records::{ListName, Operator};
use catraca::{App, ManualClock};
use tokio::task::JoinSet;

use super::helpers::{ANA, IP, RecordsFile, START, app_with, builder};

/// Enough that some run between the effect of another and its record, if they are able to.
const CHANGES: usize = 200;

/// Runs numbered changes at once; returns what each of them replaced. Each gives its number as the
/// reason for the audit.
async fn change_at_once<T, F>(app: &App, change: impl Fn(App, String) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut changes = JoinSet::new();
    for number in 0..CHANGES {
        let change = change(app.clone(), number.to_string());
        changes.spawn(async move { (number, change.await) });
    }
    let mut replaced = changes.join_all().await;
    replaced.sort_by_key(|(number, _)| *number);
    replaced.into_iter().map(|(_, before)| before).collect()
}

/// Asserts that each change has replaced the one that is recorded before it; returns the last.
fn assert_recorded_in_order<T: PartialEq + std::fmt::Debug>(
    file: &RecordsFile,
    replaced: &[T],
    value: impl Fn(usize) -> T,
) -> usize {
    let audit = file.audit();
    let mut recorded: Vec<usize> =
        audit.iter().map(|row| row.why.as_ref().unwrap().parse().unwrap()).collect();
    // A change of several entries has several rows, which are written together.
    recorded.dedup();
    assert_eq!(recorded.len(), CHANGES);
    for pair in recorded.windows(2) {
        assert_eq!(replaced[pair[1]], value(pair[0]), "{pair:?} in {recorded:?}");
    }
    recorded[CHANGES - 1]
}

fn by(why: &str) -> Operator<'_> {
    Operator { name: "ana", why: Some(why) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_one_fact_are_recorded_as_they_took_effect() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let replaced = change_at_once(&app, |app, number| async move {
        let facts = FactMap::from([("plan".to_owned(), number.clone())]);
        let changed = app.set_facts(&by(&number), None, "ip", IP, facts).await.unwrap();
        assert_eq!(changed.after["plan"], number);
        changed.before.get("plan").cloned()
    });
    let replaced = replaced.await;
    let last = assert_recorded_in_order(&file, &replaced, |number| Some(number.to_string()));
    assert_eq!(app.facts_about(None, "ip", IP).unwrap()["plan"], last.to_string());
    let stored = app.stated_facts(None, None, 9).await.unwrap().rows;
    assert_eq!((stored.len(), &*stored[0].fact), (1, &*last.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_one_list_entry_are_recorded_as_they_took_effect() {
    const ADDRESSES: [&str; 4] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let file = RecordsFile::new();
    let app = app_with(&file);
    let replaced = change_at_once(&app, |app, number| async move {
        let entry = |address: &str| NewListEntry {
            namespace: None,
            target: ListTargetText::Range(address.to_owned()),
            until: None,
            reason: Some(number.clone()),
            why: None,
        };
        let entries = ADDRESSES.map(|address| (app.list_entry(&entry(address)).unwrap(), None));
        let by = by("");
        let added = app.add_to_list(&by, ListName::Block, entries.into(), false).await.unwrap();
        let before = added.before.into_iter().map(|entry| entry.and_then(|entry| entry.reason));
        let mut before: Vec<_> = before.collect();
        before.dedup();
        assert_eq!(before.len(), 1, "all entries of a call, or none: {before:?}");
        before.remove(0)
    });
    let replaced = replaced.await;
    let last = assert_recorded_in_order(&file, &replaced, |number| Some(number.to_string()));
    let stored = app.list_entries(ListName::Block, None, None, 9).await.unwrap().rows;
    assert_eq!(stored.len(), ADDRESSES.len());
    for row in stored {
        assert_eq!(row.reason, Some(last.to_string()));
        let active = app.engine().run_time_list_entry(ListName::Block, None, &row.what).unwrap();
        assert_eq!(active.reason, row.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_one_mode_are_recorded_as_they_took_effect() {
    const MODES: [Mode; 3] = [Mode::Off, Mode::Shadow, Mode::Enforce];
    let mode_of = |number: usize| MODES[number % MODES.len()];
    let file = RecordsFile::new();
    let app = app_with(&file);
    let replaced = change_at_once(&app, |app, number| async move {
        let mode = mode_of(number.parse().unwrap());
        let changed = app.set_mode(&by(&number), "login", Some(mode)).await.unwrap();
        assert_eq!(changed.after, mode);
        changed.before
    });
    let replaced = replaced.await;
    let last = assert_recorded_in_order(&file, &replaced, mode_of);
    assert_eq!(app.engine().mode_override("login"), Some(mode_of(last)));
    let engine = builder(&ManualClock::at(START)).build();
    let restarted = App::local(engine).records(Arc::clone(&file.records)).build();
    restarted.resume(None).await.unwrap();
    assert_eq!(restarted.engine().mode_override("login"), Some(mode_of(last)));
}

/// Regression: a fact that was set while another call erased the value stayed in the records, but
/// not in the engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fact_and_an_erasure_at_once_leave_the_same_in_engine_and_records() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    for round in 0..100 {
        let facts = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
        let set = app.set_facts(&ANA, None, "ip", IP, facts);
        let (set, erased) = tokio::join!(set, app.erase(&ANA, None, "ip", IP));
        assert!(set.unwrap().durable && erased.unwrap().durable);
        let is_active = app.facts_about(None, "ip", IP).unwrap().contains_key("plan");
        let is_stored = !app.stated_facts(None, None, 9).await.unwrap().rows.is_empty();
        assert_eq!(is_active, is_stored, "round {round}");
    }
}
