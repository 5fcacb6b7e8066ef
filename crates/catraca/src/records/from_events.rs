//! Turns engine events into records, and collects the records of one operator call.
//!
//! Runs on the thread that decides, so it never waits for the database.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;

use catraca_core::time::Time;

use super::Records;
use super::ack::Receipt;
use super::record::{BlockRecord, Debt, PolicyReset, Record, RecordKind, Revision, SubjectKey};
use crate::event::Event;

/// The records that a call of [`Records::run_recorded`] has caused so far on this thread.
#[derive(Default)]
struct RecordCollector {
    by: Option<String>,
    why: Option<String>,
    records: Vec<Record>,
}

thread_local! {
    static COLLECTOR: RefCell<Option<RecordCollector>> = const { RefCell::new(None) };
}

impl Records {
    /// The engine's event listener. Returns at once: a block that a check starts is queued for the
    /// writer, and no caller waits for the disk.
    pub fn on_event(&self, event: &Event<'_>) {
        if let Event::Decided { namespace, gate, decision } = event {
            return self.minute_counts.count(namespace, gate, decision);
        }
        let Some((at, kind)) = record_kind_of(event) else { return };
        let uncollected = COLLECTOR.with_borrow_mut(|collector| match collector {
            Some(collector) => {
                collector.add(at, kind);
                None
            }
            None => Some(Record::automatic(at, kind)),
        });
        if let Some(record) = uncollected {
            self.queue.submit(vec![record], None);
        }
    }

    /// Runs a call to the engine and returns a receipt for all records that it caused on this
    /// thread; they are committed together or not at all. With an operator's name in `by`, the call
    /// is audited.
    pub fn run_recorded<R>(
        &self,
        by: Option<&str>,
        why: Option<&str>,
        call: impl FnOnce() -> R,
    ) -> (R, Receipt) {
        let new_collector = RecordCollector::new(by, why);
        let outer = OuterCollector(COLLECTOR.replace(Some(new_collector)));
        let answer = call();
        let collected = COLLECTOR.with_borrow_mut(Option::take).unwrap_or_default();
        drop(outer);
        (answer, self.record(collected.records))
    }
}

impl Records {
    /// Like [`Records::run_recorded`] for a future: collects the records of every poll, on any
    /// thread.
    pub async fn run_recorded_async<R>(
        &self,
        by: Option<&str>,
        why: Option<&str>,
        call: impl Future<Output = R>,
    ) -> (R, Receipt) {
        let new_collector = RecordCollector::new(by, why);
        let mut collector = Some(new_collector);
        let mut call = pin!(call);
        let answer = poll_fn(|context| {
            // Set only during the poll: other tasks run on this thread between two polls.
            let _outer = OuterCollector(COLLECTOR.replace(collector.take()));
            let polled = call.as_mut().poll(context);
            collector = COLLECTOR.take();
            polled
        });
        let answer = answer.await;
        (answer, self.record(collector.unwrap_or_default().records))
    }
}

/// The collector of an enclosing call on this thread. Restored on drop, so also when the inner call
/// panics.
struct OuterCollector(Option<RecordCollector>);

impl Drop for OuterCollector {
    fn drop(&mut self) {
        COLLECTOR.set(self.0.take());
    }
}

impl RecordCollector {
    fn new(by: Option<&str>, why: Option<&str>) -> Self {
        Self { by: by.map(Into::into), why: why.map(Into::into), records: Vec::new() }
    }

    fn add(&mut self, at: Time, kind: RecordKind) {
        let by = self.by.clone();
        let why = self.why.clone();
        self.records.push(Record { at, by, why, kind });
    }
}

/// The time and the record of an event; nothing for events that are not recorded.
fn record_kind_of(event: &Event<'_>) -> Option<(Time, RecordKind)> {
    let subject_of = |namespace: &str, key, policy: &str, parts: &[(String, String)]| SubjectKey {
        key,
        namespace: namespace.to_owned(),
        policy: policy.to_owned(),
        parts: parts.to_vec(),
    };
    match event {
        Event::Blocked(block) => {
            let subject = subject_of(&block.namespace, block.key, &block.policy, &block.parts);
            let until = block.until;
            let origin = block.origin;
            let note = block.note.clone();
            let epoch = block.epoch;
            let shadow = block.shadow;
            let forget = block.forget;
            let record = BlockRecord { subject, epoch, until, origin, note, shadow, forget };
            Some((block.at, RecordKind::Block(Box::new(record))))
        }
        Event::Unblocked { at, namespace, key, policy, parts } => {
            Some((*at, RecordKind::Release(subject_of(namespace, *key, policy, parts))))
        }
        Event::Reset { at, namespace, key, policy, parts } => {
            Some((*at, RecordKind::Reset(subject_of(namespace, *key, policy, parts))))
        }
        Event::PolicyReset { at, policy, epoch } => {
            let reset = PolicyReset { policy: (*policy).to_owned(), epoch: *epoch };
            Some((*at, RecordKind::ResetPolicy(reset)))
        }
        Event::Debt(event) => {
            let subject = subject_of(&event.namespace, event.key, &event.policy, &event.parts);
            let debt =
                Debt { subject, epoch: event.epoch, balance: event.balance, terms: event.terms };
            Some((event.at, RecordKind::Debt(Box::new(debt))))
        }
        Event::CatalogReloaded { at, revision, policies } => {
            let revision = Revision { revision: (*revision).to_owned(), policies: Some(*policies) };
            Some((*at, RecordKind::Catalog(revision)))
        }
        _ => None,
    }
}
