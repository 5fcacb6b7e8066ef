//! The engine's side of a comparison: applies operations through the engine's public interface.
//!
//! It only translates: no figure of an answer is computed here.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca::memory::{Memory, MemoryOptions};
use catraca::settlement::{Reconciliation, SettleState, Settlement};
use catraca::store::{Store, StoreError, When};
use catraca::{
    BlockProposal, BucketObservation, Catalog, Check, Clock, Credit, Engine, Error, ManualClock,
    Settle,
};
use catraca::{Outcome, Refusal, Secret, Span, Subject, Time};
use catraca_core::batch::{Batch, BlockReply, Reply};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::answer::{ComparedAnswer, ComparedRefusal};
use super::convert;
use crate::generate::catalog_toml;
use crate::generate::op::{Op, OpKind};
use crate::oracle::answer as plain;
use crate::oracle::select::{CheckRequest, Subject as Attributes};
use crate::oracle::{FOREVER, Micros, catalog, outcome};

/// An engine on a manual clock, and its tickets by the number of the operation.
pub struct EngineSide<S = Memory> {
    engine: Engine<S>,
    clock: ManualClock,
    versions: Vec<Catalog>,
    tickets: BTreeMap<usize, String>,
}

impl EngineSide {
    /// A new engine with the first version of the catalog, on an empty memory store.
    pub fn new(versions: &[catalog::Catalog]) -> EngineSide {
        let versions: Vec<Catalog> = versions.iter().map(read).collect();
        let clock = ManualClock::at(Time::ZERO);
        let engine = Engine::builder(versions[0].clone()).clock(clock.clone()).build();
        EngineSide { engine, clock, versions, tickets: BTreeMap::new() }
    }

    /// A new engine on a memory store of this size, with the first of these catalogs.
    pub fn with_memory(versions: Vec<Catalog>, options: MemoryOptions) -> EngineSide {
        let clock = ManualClock::at(Time::ZERO);
        // A fixed secret, because the digests of keys decide which of them find room.
        let secret = Secret::from_bytes([7; 32]);
        let builder = Engine::builder(versions[0].clone()).clock(clock.clone()).secret(secret);
        let engine = builder.memory(options).build();
        EngineSide { engine, clock, versions, tickets: BTreeMap::new() }
    }

    /// The memory store.
    pub fn memory(&self) -> &Memory {
        self.engine.store()
    }
}

impl EngineSide<StoreAtClock> {
    /// A new engine on another store. It has a secret of its own, so its keys are new to the store.
    pub fn on_store(versions: &[catalog::Catalog], store: Arc<dyn Store>) -> Self {
        let versions: Vec<Catalog> = versions.iter().map(read).collect();
        let clock = ManualClock::at(Time::ZERO);
        let builder = Engine::builder(versions[0].clone()).clock(clock.clone());
        let engine = builder.build_with_store(StoreAtClock { store, clock: clock.clone() });
        EngineSide { engine, clock, versions, tickets: BTreeMap::new() }
    }
}

/// A store that applies every batch at the instant of a manual clock.
#[derive(Clone)]
pub struct StoreAtClock {
    store: Arc<dyn Store>,
    clock: ManualClock,
}

impl Store for StoreAtClock {
    fn apply(&self, batch: &Batch, _: When) -> Result<Reply, StoreError> {
        self.store.apply(batch, When::At(self.clock.now()))
    }
}

impl<S: Store> EngineSide<S> {
    /// Applies one operation; `None` for a settle whose check was dropped from the trace or denied.
    pub fn apply(&mut self, op: &Op) -> Option<ComparedAnswer> {
        self.clock.set(Time::from_micros(op.at));
        let answer = match &op.kind {
            OpKind::Settle { check, outcome } => self.settle(self.tickets.get(check)?, outcome),
            kind => self.apply_other(op.number, kind),
        };
        Some(answer.unwrap_or_else(refusal_answer))
    }

    /// Applies any operation but a settle.
    fn apply_other(&mut self, number: usize, kind: &OpKind) -> Result<ComparedAnswer, Error> {
        match kind {
            OpKind::Check(request) => self.check(number, request),
            OpKind::Peek(request) => Ok(decision_answer(&self.engine.peek(&check(request))?, 0)),
            OpKind::Credit { reference, event, subject } => self.credit(reference, event, subject),
            OpKind::Block { policy, subject, length } => self.block(policy, subject, *length),
            OpKind::Unblock { policy, subject } => {
                let was_blocked =
                    self.engine.unblock(DEFAULT_NAMESPACE, policy, &subject_of(subject))?;
                Ok(ComparedAnswer::Released(was_blocked))
            }
            OpKind::Reset { policy, subject } => {
                self.engine.reset(DEFAULT_NAMESPACE, policy, &subject_of(subject))?;
                Ok(ComparedAnswer::Done)
            }
            OpKind::Reconcile { policy, subject, level, observed_at } => {
                self.reconcile(policy, subject, *level, *observed_at)
            }
            OpKind::Reload(version) => {
                self.engine.reload(self.versions[*version].clone());
                Ok(ComparedAnswer::Done)
            }
            OpKind::StateGrade { user, grade: Some(grade) } => {
                self.engine.state_facts(None, "user", user, &[("grade", grade)])?;
                Ok(ComparedAnswer::Done)
            }
            OpKind::StateGrade { user, grade: None } => {
                self.engine.forget_facts(None, "user", user)?;
                Ok(ComparedAnswer::Done)
            }
            OpKind::Settle { .. } => Ok(ComparedAnswer::Done),
        }
    }

    fn check(&mut self, number: usize, request: &CheckRequest) -> Result<ComparedAnswer, Error> {
        let decision = self.engine.check(&check(request))?;
        let answer = decision_answer(&decision, number);
        if let Some(ticket) = decision.ticket {
            self.tickets.insert(number, ticket);
        }
        Ok(answer)
    }

    fn settle(&self, ticket: &str, outcome: &outcome::Outcome) -> Result<ComparedAnswer, Error> {
        let outcome = engine_outcome(outcome);
        let settlement = self.engine.settle(&Settle::ticket(ticket, &outcome))?;
        Ok(ComparedAnswer::Settled(settle_answer(settlement)))
    }

    fn credit(
        &self,
        name: &str,
        event: &str,
        subject: &Attributes,
    ) -> Result<ComparedAnswer, Error> {
        let credited = self.engine.credit(&Credit::new(name, event, &subject_of(subject)))?;
        Ok(ComparedAnswer::Credited(match credited {
            Ok(taken) => plain::CreditAnswer::Applied(
                taken.into_iter().map(|(policy, units)| (policy.to_string(), units)).collect(),
            ),
            Err(reason) => convert::not_credited(reason),
        }))
    }

    fn block(
        &self,
        policy: &str,
        subject: &Attributes,
        length: Micros,
    ) -> Result<ComparedAnswer, Error> {
        let span = if length == FOREVER { Span::FOREVER } else { Span::from_micros(length) };
        let subject = subject_of(subject);
        let proposal = BlockProposal::by_operator(span, Some("asked"));
        let blocked = self.engine.block(DEFAULT_NAMESPACE, policy, &subject, proposal)?;
        let block = |reply: BlockReply| plain::StartedBlock {
            until: if reply.block.until.is_forever() {
                FOREVER
            } else {
                reply.block.until.micros()
            },
            origin: convert::origin(reply.block.origin),
            changed: reply.changed,
        };
        let blocks = blocked.into_iter().map(|(_, reply)| block(reply));
        Ok(ComparedAnswer::Blocked(blocks.collect()))
    }

    fn reconcile(
        &self,
        policy: &str,
        subject: &Attributes,
        available: i64,
        observed_at: Micros,
    ) -> Result<ComparedAnswer, Error> {
        let observed = [BucketObservation { policy, available, capacity: None }];
        let at = Time::from_micros(observed_at);
        let Reconciliation { drifts, skipped, .. } =
            self.engine.reconcile(DEFAULT_NAMESPACE, &subject_of(subject), at, &observed)?;
        // The oracle refuses what the engine skips: there is one state only.
        if let Some(skipped) = skipped.into_iter().next() {
            return Err(skipped.why.into());
        }
        let drift = |drift: catraca::settlement::Drift| plain::Drift {
            before: drift.before,
            after: drift.after,
        };
        Ok(ComparedAnswer::Reconciled(drifts.into_iter().map(drift).collect()))
    }
}

/// The catalog, parsed from TOML as a user would write it.
fn read(catalog: &catalog::Catalog) -> Catalog {
    let text = catalog_toml::toml(catalog);
    Catalog::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn check(request: &CheckRequest) -> Check<'_> {
    Check {
        namespace: DEFAULT_NAMESPACE,
        gate: &request.gate,
        subject: subject_of(&request.subject),
        cost: request.cost,
        reference: request.reference.as_deref(),
        lists: request.lists,
    }
}

fn subject_of(subject: &Attributes) -> Subject<'_> {
    subject.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn engine_outcome(outcome: &outcome::Outcome) -> Outcome {
    let body = match (outcome.reject_id, outcome.body_bytes) {
        (None, 0) => serde_json::Value::Null,
        (reject_id, bytes) => outcome_body(reject_id, bytes),
    };
    let header = outcome.retry_after.map(|wait| ("retry-after".to_owned(), wait.to_string()));
    Outcome {
        status: outcome.status.and_then(|status| u16::try_from(status).ok()),
        body,
        headers: header.into_iter().collect(),
        cost: outcome.cost,
        ..Outcome::default()
    }
}

/// A body padded to `bytes` bytes of JSON; 0 means no padding.
fn outcome_body(reject_id: Option<i64>, bytes: usize) -> serde_json::Value {
    let mut body = serde_json::Map::new();
    body.extend(reject_id.map(|id| ("reject_id".to_owned(), id.into())));
    if bytes > 0 {
        body.insert("fill".to_owned(), "".into());
        let missing = bytes - serde_json::Value::from(body.clone()).to_string().len();
        body.insert("fill".to_owned(), "x".repeat(missing).into());
    }
    body.into()
}

fn decision_answer(decision: &catraca::Decision, number: usize) -> ComparedAnswer {
    if decision.degraded {
        return ComparedAnswer::Degraded(decision.reason.to_string());
    }
    ComparedAnswer::Decided(convert::decision(decision, number))
}

fn settle_answer(settlement: Settlement) -> plain::SettleAnswer {
    if settlement.state == SettleState::Expired {
        return plain::SettleAnswer::Expired;
    }
    plain::SettleAnswer::Applied(settlement.rows.iter().map(convert::settled_row).collect())
}

fn refusal_answer(error: Error) -> ComparedAnswer {
    ComparedAnswer::Refused(match error {
        // The oracle does not distinguish a missing tier from a missing attribute.
        Error::Refused(Refusal::MissingAttribute { .. } | Refusal::NoTier(_)) => {
            ComparedRefusal::MissingAttribute
        }
        Error::Refused(Refusal::UnknownGate(_)) => ComparedRefusal::UnknownGate,
        Error::Refused(Refusal::UnknownPolicy(_)) => ComparedRefusal::UnknownPolicy,
        other => ComparedRefusal::Other(other.to_string()),
    })
}
