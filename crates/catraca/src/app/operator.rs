//! What all operators' acts have in common: they need records, are audited, run to their end, and
//! are published to other nodes.

use std::sync::Arc;
use std::time::Duration;

use catraca_core::request::{REASON_MAX, validate_storable};

use super::{App, AppError};
use crate::engine::Exchange;
use crate::error::Error;
use crate::event::Event;
use crate::records::{
    Ack, AuditNote, Incomplete, Operator, Receipt, Record, RecordKind, Records, RecordsError,
};
use crate::shared::SharedDriver;

/// The longest text of an operator, such as a reason, in characters: the same as in the catalog.
pub const TEXT_MAX: usize = REASON_MAX;

/// The longest time for which a query waits until the queued records are written.
const BARRIER_WAIT_MAX: Duration = Duration::from_secs(1);

/// The longest time for which an act waits until it is on disk.
const ACT_WAIT_MAX: Duration = Duration::from_secs(2);

/// Shows that its owner holds the lock under which lists, facts and modes change.
pub(super) type ChangeGuard<'a> = tokio::sync::MutexGuard<'a, ()>;

/// An act that was applied and whose records are queued.
pub(super) struct ActReceipt {
    pub records: Receipt,
    /// Whether this node has applied a part of it without the shared store.
    pub is_local: bool,
}

/// An operator, for a task that outlives the request.
pub(super) struct OwnedOperator {
    name: String,
    why: Option<String>,
}

impl OwnedOperator {
    /// Refuses a reason that cannot be recorded.
    pub fn new(operator: &Operator<'_>) -> Result<Self, AppError> {
        let why = check_text("why", operator.why)?.map(str::to_owned);
        Ok(Self { name: operator.name.to_owned(), why })
    }

    pub fn borrow(&self) -> Operator<'_> {
        Operator { name: &self.name, why: self.why.as_deref() }
    }

    /// The same operator, with another reason if none was given.
    pub fn or_why(mut self, why: Option<&str>) -> Self {
        self.why = self.why.or_else(|| why.map(str::to_owned));
        self
    }
}

impl Operator<'_> {
    /// Refuses a reason that cannot be recorded.
    pub fn validate(&self) -> Result<(), AppError> {
        check_text("why", self.why).map(drop)
    }
}

/// How long an operator's query of the records may take.
const READ_DEADLINE: Duration = Duration::from_secs(10);

impl App {
    /// Audits an act that changes nothing in the records; returns whether that is on disk. Without
    /// records nothing is audited.
    pub async fn audit_note(
        &self,
        by: &Operator<'_>,
        act: &str,
        target: String,
    ) -> Result<bool, AppError> {
        by.validate()?;
        let Some(records) = &self.parts.records else { return Ok(false) };
        let note = RecordKind::Note(AuditNote { act: act.to_owned(), target });
        let receipt = records.record(vec![Record::operator(self.now(), by.name, by.why, note)]);
        Ok(self.is_recorded(receipt).await)
    }

    /// Waits until the records of an act are on disk, for a bounded time: the act is in force, and
    /// a database that hangs must not hold up its answer. Returns whether they are known to be.
    pub(super) async fn is_recorded(&self, receipt: Receipt) -> bool {
        if let Ok(ack) = tokio::time::timeout(ACT_WAIT_MAX, receipt).await {
            return ack.is_durable();
        }
        self.parts.records.iter().for_each(|records| records.count_unconfirmed());
        false
    }

    /// The records. Acts ask for them first: without records a change would be lost at a restart.
    pub(super) fn required_records(&self) -> Result<&Arc<Records>, AppError> {
        self.parts.records.as_ref().ok_or(AppError::NoRecords)
    }

    /// Waits until what has happened so far is in the records: a check answers before its block is
    /// written, and an operator who has seen the answer must find the block. A slow database delays
    /// a query by a bounded time only, and one that is known to be unavailable not at all: then the
    /// query shows what is written, and its answer must say what was returned here.
    pub(super) async fn await_queued_records(&self) -> Result<Option<Incomplete>, AppError> {
        let barrier = self.required_records()?.barrier();
        let (waited, incomplete) = match tokio::time::timeout(BARRIER_WAIT_MAX, barrier).await {
            Ok(Ack::Durable) => return Ok(None),
            Ok(Ack::NotYet(_)) => (Duration::ZERO, Incomplete::Unwritable),
            Err(_) => (BARRIER_WAIT_MAX, Incomplete::Queued),
        };
        self.engine().emit(&Event::RecordsBehind { at: self.now(), waited });
        Ok(Some(incomplete))
    }

    /// Runs a query of the records on a thread for blocking work: it waits for the disk. Fails when
    /// [`READ_DEADLINE`] has passed, because a database that hangs would never answer.
    pub(super) async fn read_records<R: Send + 'static>(
        &self,
        query: impl FnOnce(&Records) -> Result<R, RecordsError> + Send + 'static,
    ) -> Result<R, AppError> {
        run_within(READ_DEADLINE, self.change_records(query)).await
    }

    /// Runs a change of the records on a thread for blocking work, to its end.
    pub(super) async fn change_records<R: Send + 'static>(
        &self,
        change: impl FnOnce(&Records) -> Result<R, RecordsError> + Send + 'static,
    ) -> Result<R, AppError> {
        let records = Arc::clone(self.required_records()?);
        Ok(tokio::task::spawn_blocking(move || change(&records)).await??)
    }

    /// Runs an act as a task of its own, so that it ends even if its caller disconnects.
    pub(super) async fn run_to_end<R: Send + 'static>(
        &self,
        act: impl Future<Output = Result<R, AppError>> + Send + 'static,
    ) -> Result<R, AppError> {
        tokio::spawn(act).await?
    }

    /// Runs an operation, and queues its records and its audit in one transaction. The receipt is
    /// for what has happened, even if the operation failed.
    pub(super) async fn run_audited<X: Exchange>(
        &self,
        by: &OwnedOperator,
        mut exchange: X,
    ) -> Result<(Result<X::Answer, Error>, ActReceipt), AppError> {
        let records = self.required_records()?;
        let (answer, events) = self.drive(&mut exchange).await;
        let is_local = events.is_local();
        let events = events.into_vec();
        let records = records.record_events(Some(by.borrow()), &events);
        let receipt = ActReceipt { records, is_local };
        for event in &events {
            self.notify_nodes(event);
            self.engine().emit(event);
        }
        if let Ok(answer) = &answer {
            self.report_summary(&exchange, answer);
        }
        Ok((answer, receipt))
    }

    /// Records and audits one event of the engine.
    pub(super) fn record_audited(
        &self,
        by: &OwnedOperator,
        event: &Event<'_>,
    ) -> Result<Receipt, AppError> {
        let receipt =
            self.required_records()?.record_events(Some(by.borrow()), std::slice::from_ref(event));
        self.engine().emit(event);
        Ok(receipt)
    }

    /// Records and audits what was done to lists, facts or modes, and notifies other nodes, which
    /// then read it. Returns whether it is on disk.
    pub(super) async fn record_change(
        &self,
        order: &ChangeGuard<'_>,
        by: &OwnedOperator,
        changes: Vec<RecordKind>,
    ) -> Result<bool, AppError> {
        let at = self.now();
        let Operator { name, why } = by.borrow();
        let records = changes.into_iter().map(|change| Record::operator(at, name, why, change));
        self.write_change(order, records.collect()).await
    }

    /// As [`Self::record_change`]. The guard shows that no other change took effect since: all
    /// changes of this node up to now are queued.
    pub(super) async fn write_change(
        &self,
        _order: &ChangeGuard<'_>,
        changes: Vec<Record>,
    ) -> Result<bool, AppError> {
        let records = self.required_records()?;
        if let Some(shared) = self.node_scope() {
            return Ok(self.write_shared_rules(shared, records, changes).await);
        }
        let modes = changes.iter().filter(|change| matches!(change.kind, RecordKind::Mode(..)));
        let modes: Vec<RecordKind> = modes.map(|change| change.kind.clone()).collect();
        let published = self.parts.shared.as_ref().map(|shared| shared.publish_modes(&modes));
        let receipt = records.record(changes);
        let local_changes = self.engine().local_changes();
        let number = local_changes.last();
        let durable = self.is_recorded(receipt).await;
        match durable {
            // Before other nodes are notified: the next read of this node contains the change.
            true => {
                local_changes.on_written(number);
                if let (Some(shared), Some(at)) = (&self.parts.shared, published) {
                    shared.forget_recorded_modes(&modes, at);
                }
            }
            false => local_changes.on_late(number),
        }
        self.publish_change().await;
        Ok(durable)
    }
}

impl App {
    /// The driver, if each node has records of its own.
    pub(super) fn node_scope(&self) -> Option<&Arc<SharedDriver>> {
        self.parts.shared.as_ref().filter(|shared| shared.is_node_scope())
    }

    /// Writes a change to the store, which is the authority, and to the records of this node. The
    /// record is queued first: what another node changes later is recorded later.
    async fn write_shared_rules(
        &self,
        shared: &SharedDriver,
        records: &Records,
        changes: Vec<Record>,
    ) -> bool {
        let local_changes = self.engine().local_changes();
        let number = local_changes.last();
        let kinds: Vec<RecordKind> = changes.iter().map(|change| change.kind.clone()).collect();
        let receipt = records.record(changes);
        let in_store = shared.write_rule_changes(&kinds).await;
        if in_store {
            local_changes.on_written(number);
        }
        // Its own history is as durable as its disk; the answer is about the store.
        let _ = self.is_recorded(receipt).await;
        in_store
    }

    /// Waits until an act is recorded, or known not to be. Returns whether it is, and whether the
    /// act is durable: with records of each node, if the store has applied it.
    pub(super) async fn confirm_act(&self, receipt: ActReceipt) -> (bool, bool) {
        let recorded = self.is_recorded(receipt.records).await;
        let durable = if self.node_scope().is_some() { !receipt.is_local } else { recorded };
        (recorded, durable)
    }

    /// The other nodes that do not know of an act with this `durable` yet, as far as this node
    /// knows them.
    pub fn nodes_behind(&self, durable: bool) -> Vec<String> {
        let shared = self.parts.shared.as_ref().filter(|_| !durable);
        shared.map(|shared| shared.node_names()).unwrap_or_default()
    }
}

/// Checks the length and the characters of a text of an operator; an empty text counts as none.
pub(super) fn check_text<'t>(
    name: &str,
    text: Option<&'t str>,
) -> Result<Option<&'t str>, AppError> {
    let Some(text) = text else { return Ok(None) };
    let characters = text.chars().count();
    if characters > TEXT_MAX {
        let detail = format!("`{name}` may have {TEXT_MAX} characters and has {characters}");
        return Err(AppError::invalid("text-too-long", detail));
    }
    validate_storable(format_args!("`{name}`"), text)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Waits for a query of the records until the deadline. The query itself cannot be interrupted; its
/// thread ends when the database answers or its connection times out.
async fn run_within<R>(
    deadline: Duration,
    query: impl Future<Output = Result<R, AppError>>,
) -> Result<R, AppError> {
    let timed_out = || {
        let seconds = deadline.as_secs_f64();
        RecordsError(format!(
            "the records did not answer within {seconds} s; try again when their database responds"
        ))
    };
    match tokio::time::timeout(deadline, query).await {
        Ok(answer) => answer,
        Err(_) => Err(timed_out().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: while the database hung, operators' queries were never answered.
    #[tokio::test(start_paused = true)]
    async fn a_query_that_hangs_fails_at_its_deadline() {
        let hangs = std::future::pending::<Result<(), AppError>>();
        let failed = run_within(READ_DEADLINE, hangs).await.expect_err("it never answers");
        assert!(matches!(&failed, AppError::Records(error) if error.0.contains("10 s")));
        let answers = run_within(READ_DEADLINE, async { Ok(7) }).await;
        assert_eq!(answers.expect("it answers"), 7);
    }
}
