//! Turns events into records.
//!
//! Runs on the thread that decides, so it never waits for the database.

use std::sync::Arc;
use std::time::SystemTime;

use catraca_core::catalog::Catalog;
use catraca_core::digest::Digester;
use catraca_core::time::Time;

use super::Records;
use super::ack::Receipt;
use super::record::{PolicyReset, Record, RecordKind, Revision};
use crate::event::Event;

/// The operator who acts, for the audit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operator<'a> {
    /// The operator's name.
    pub name: &'a str,
    /// Why the operator acts.
    pub why: Option<&'a str>,
}

impl Records {
    /// The event listener of an engine without an [`crate::App`]. Returns at once: a block that a
    /// check starts is queued for the writer, and no caller waits for the disk.
    pub fn on_event(&self, event: &Event<'_>) {
        if let Event::Decided { namespace, gate, decision, keys } = event {
            self.minute_counts.count(namespace, gate, decision);
            return self.key_counts.count(decision, keys);
        }
        if let Some((at, kind)) = record_kind_of(event) {
            self.queue.submit(vec![Record::automatic(at, kind)], None);
        }
    }

    /// Queues the replacement of values in clear by pseudonyms, for the attributes that the catalog
    /// declares private.
    pub fn hide_values(
        &self,
        at: impl Into<SystemTime>,
        catalog: &Arc<Catalog>,
        digester: &Digester,
    ) -> Receipt {
        let kind = RecordKind::HideValues(Arc::clone(catalog), digester.clone());
        self.record(vec![Record::automatic(at, kind)])
    }

    /// Queues the records of the events of one operation, which are committed together or not at
    /// all. With an operator, the operation is audited.
    pub fn record_events(&self, by: Option<Operator<'_>>, events: &[Event<'_>]) -> Receipt {
        let record = |(at, kind)| match by {
            Some(Operator { name, why }) => Record::operator(at, name, why, kind),
            None => Record::automatic(at, kind),
        };
        self.record(events.iter().filter_map(record_kind_of).map(record).collect())
    }
}

/// The time and the record of an event; nothing for events that are not recorded.
fn record_kind_of(event: &Event<'_>) -> Option<(Time, RecordKind)> {
    match event {
        Event::Blocked { at, block } => Some((*at, RecordKind::Block(block.clone()))),
        Event::Unblocked { at, subject } => Some((*at, RecordKind::Release(subject.clone()))),
        Event::Reset { at, subject } => Some((*at, RecordKind::Reset(subject.clone()))),
        Event::PolicyReset { at, policy, epoch } => {
            let reset = PolicyReset { policy: policy.to_string(), epoch: *epoch };
            Some((*at, RecordKind::ResetPolicy(reset)))
        }
        Event::Debt { at, debt } => Some((*at, RecordKind::Debt(debt.clone()))),
        Event::CatalogReloaded { at, revision, policies } => {
            let revision = Revision { revision: revision.to_string(), policies: Some(*policies) };
            Some((*at, RecordKind::Catalog(revision)))
        }
        _ => None,
    }
}
