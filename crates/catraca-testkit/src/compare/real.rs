//! The engine's side of a comparison: plays operations through its public interface.
//!
//! It must only translate: no figure is computed here that the engine did not give.

use std::collections::BTreeMap;

use catraca::settlement::{Settled, Settlement};
use catraca::{BlockOrder, Catalog, Check, Engine, Error, ManualClock, Observed, Settle};
use catraca::{Outcome, Refusal, Span, Subject, Time};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::answer::{Answer, Refused};
use super::words;
use crate::generate::op::{Op, Verb};
use crate::generate::text;
use crate::oracle::answer as plain;
use crate::oracle::select::{Ask, Subject as Attributes};
use crate::oracle::{FOREVER, Micros, catalog, outcome};

/// An engine with a clock of its own and the tickets it gave.
pub struct Real {
    engine: Engine,
    clock: ManualClock,
    versions: Vec<Catalog>,
    tickets: BTreeMap<usize, String>,
}

impl Real {
    /// A fresh engine under the first version of the catalog.
    pub fn new(versions: &[catalog::Catalog]) -> Real {
        let versions: Vec<Catalog> = versions.iter().map(read).collect();
        let clock = ManualClock::at(Time::ZERO);
        let engine = Engine::builder(versions[0].clone()).clock(clock.clone()).build();
        Real { engine, clock, versions, tickets: BTreeMap::new() }
    }

    /// Plays one operation; `None` when it has no meaning, its check being left out or denied.
    pub fn play(&mut self, op: &Op) -> Option<Answer> {
        self.clock.set(Time::from_micros(op.at));
        let played = match &op.verb {
            Verb::Settle { check, outcome } => self.settle(self.tickets.get(check)?, outcome),
            verb => self.other(op.number, verb),
        };
        Some(played.unwrap_or_else(refused))
    }

    fn other(&mut self, number: usize, verb: &Verb) -> Result<Answer, Error> {
        match verb {
            Verb::Check(ask) => self.check(number, ask),
            Verb::Peek(ask) => Ok(decided(&self.engine.peek(&check(ask))?, 0)),
            Verb::Credit { reference, event, subject } => self.credit(reference, event, subject),
            Verb::Block { policy, subject, length } => self.block(policy, subject, *length),
            Verb::Unblock { policy, subject } => {
                let stood = self.engine.unblock(DEFAULT_NAMESPACE, policy, &who(subject))?;
                Ok(Answer::Released(stood))
            }
            Verb::Reset { policy, subject } => {
                self.engine.reset(DEFAULT_NAMESPACE, policy, &who(subject))?;
                Ok(Answer::Done)
            }
            Verb::Reconcile { policy, subject, level, observed_at } => {
                self.reconcile(policy, subject, *level, *observed_at)
            }
            Verb::Reload(version) => {
                self.engine.reload(self.versions[*version].clone());
                Ok(Answer::Done)
            }
            Verb::Settle { .. } => Ok(Answer::Done),
        }
    }

    fn check(&mut self, number: usize, ask: &Ask) -> Result<Answer, Error> {
        let decision = self.engine.check(&check(ask))?;
        let answer = decided(&decision, number);
        if let Some(ticket) = decision.ticket {
            self.tickets.insert(number, ticket);
        }
        Ok(answer)
    }

    fn settle(&self, ticket: &str, outcome: &outcome::Outcome) -> Result<Answer, Error> {
        let outcome = happened(outcome);
        let settlement = self.engine.settle(&Settle::ticket(ticket, &outcome))?;
        Ok(Answer::Settled(settled(settlement)))
    }

    fn credit(&self, name: &str, event: &str, subject: &Attributes) -> Result<Answer, Error> {
        let credited = self.engine.credit(DEFAULT_NAMESPACE, name, event, &who(subject))?;
        Ok(Answer::Credited(match credited {
            Ok(taken) => plain::Credited::Applied(
                taken.into_iter().map(|(policy, units)| (policy.to_string(), units)).collect(),
            ),
            Err(reason) => words::not_credited(reason),
        }))
    }

    fn block(&self, policy: &str, subject: &Attributes, length: Micros) -> Result<Answer, Error> {
        let span = if length == FOREVER { Span::FOREVER } else { Span::from_micros(length) };
        let subject = who(subject);
        let reason = Some("asked");
        let order = BlockOrder { namespace: DEFAULT_NAMESPACE, policy, subject, span, reason };
        let stands = |key: catraca::settlement::BlockedKey| plain::Stands {
            until: if key.until.is_forever() { FOREVER } else { key.until.micros() },
            origin: words::origin(key.origin),
            changed: key.changed,
        };
        Ok(Answer::Blocked(self.engine.block(&order)?.into_iter().map(stands).collect()))
    }

    fn reconcile(
        &self,
        policy: &str,
        subject: &Attributes,
        available: i64,
        observed_at: Micros,
    ) -> Result<Answer, Error> {
        let seen = [Observed { policy, available }];
        let at = Time::from_micros(observed_at);
        let drifts = self.engine.reconcile(DEFAULT_NAMESPACE, &who(subject), at, &seen)?;
        let drift = |drift: catraca::settlement::Drift| plain::Drift {
            before: drift.before,
            after: drift.after,
        };
        Ok(Answer::Reconciled(drifts.into_iter().map(drift).collect()))
    }
}

/// Reads a catalog from the text a person would have written.
fn read(catalog: &catalog::Catalog) -> Catalog {
    let text = text::toml(catalog);
    Catalog::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn check(ask: &Ask) -> Check<'_> {
    Check {
        namespace: DEFAULT_NAMESPACE,
        gate: &ask.gate,
        subject: who(&ask.subject),
        cost: ask.cost,
        reference: ask.reference.as_deref(),
        lists: ask.lists,
    }
}

fn who(subject: &Attributes) -> Subject<'_> {
    subject.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn happened(outcome: &outcome::Outcome) -> Outcome {
    let body = match (outcome.reject_id, outcome.body_bytes) {
        (None, 0) => serde_json::Value::Null,
        (reject_id, bytes) => filled(reject_id, bytes),
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

/// A body that is this many bytes of JSON, or as long as it is.
fn filled(reject_id: Option<i64>, bytes: usize) -> serde_json::Value {
    let mut body = serde_json::Map::new();
    body.extend(reject_id.map(|id| ("reject_id".to_owned(), id.into())));
    if bytes > 0 {
        body.insert("fill".to_owned(), "".into());
        let missing = bytes - serde_json::Value::from(body.clone()).to_string().len();
        body.insert("fill".to_owned(), "x".repeat(missing).into());
    }
    body.into()
}

fn decided(decision: &catraca::Decision, number: usize) -> Answer {
    Answer::Decided(words::decision(decision, number))
}

fn settled(settlement: Settlement) -> plain::Settled {
    if settlement.state == Settled::Expired {
        return plain::Settled::Expired;
    }
    plain::Settled::Applied(settlement.rows.iter().map(words::paid).collect())
}

fn refused(error: Error) -> Answer {
    Answer::Refused(match error {
        Error::Refused(Refusal::Missing { .. } | Refusal::NoTier(_)) => Refused::MissingAttribute,
        Error::Refused(Refusal::UnknownGate(_)) => Refused::UnknownGate,
        Error::Refused(Refusal::UnknownPolicy(_)) => Refused::UnknownPolicy,
        other => Refused::Other(other.to_string()),
    })
}
