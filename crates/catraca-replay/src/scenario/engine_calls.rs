//! Executes the verbs of steps on an engine and renders the answers as JSON.
//!
//! The runner moves the clock and compares the answers; this file does neither.

use std::collections::BTreeMap;

use catraca::event::SubjectKey;
use catraca::json::{AsJson, origin_name};
use catraca::{
    BlockProposal, BucketObservation, Catalog, Check, Credit, Engine, Error, ManualClock, Secret,
    Settle, Subject, Time,
};
use catraca::{Decision, Outcome, engine};
use catraca_core::batch::BlockReply;
use serde_json::{Value, json};

use super::verb::{
    BlockStep, BucketsStep, CheckStep, CreditStep, FactStep, Pairs, ReconcileStep, SettleStep,
};
use super::verb::{CheckReference, KeyStep, StepVerb};
use crate::text::sanitize;

/// A fixed secret, because the pseudonyms and keys in answers must be the same in every run.
const SECRET: [u8; 32] = *b"a secret that scenarios all know";

/// An engine on a manual clock, and the tickets that steps saved with `as`.
pub(super) struct ScenarioEngine {
    engine: Engine,
    pub clock: ManualClock,
    tickets: BTreeMap<String, String>,
}

/// The refusal of a call, by its code.
#[derive(Clone, Debug)]
pub(super) struct StepRefusal {
    pub code: String,
    pub message: String,
}

type StepAnswer = Result<Value, StepRefusal>;

impl ScenarioEngine {
    pub fn new(catalog: Catalog, start: Time) -> Self {
        let clock = ManualClock::at(start);
        let secret = Secret::from_bytes(SECRET);
        let engine = Engine::builder(catalog).clock(clock.clone()).secret(secret).build();
        Self { engine, clock, tickets: BTreeMap::new() }
    }

    /// Describes the gate of a check that the active catalog does not declare.
    pub fn undeclared_gate(&self, verb: &StepVerb) -> Option<String> {
        let (StepVerb::Check(step) | StepVerb::Peek(step)) = verb else { return None };
        let catalog = self.engine.catalog();
        if catalog.gates.contains_key(step.gate.as_str()) {
            return None;
        }
        let hint = match catalog.nearest_gate(&step.gate) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "it declares no similar one".to_owned(),
        };
        Some(format!("`{}`, which the catalog does not declare; {hint}", sanitize(&step.gate)))
    }

    /// Executes a verb as its `n`-th repetition; the ticket of a check is saved as `keep`.
    pub fn act(&mut self, verb: &StepVerb, keep: Option<&str>, n: usize) -> StepAnswer {
        match verb {
            StepVerb::Check(ask) => self.check(ask, keep, n),
            StepVerb::Peek(ask) => self.peek(ask, n),
            StepVerb::Settle(call) => self.settle(call, n),
            StepVerb::Credit(call) => self.credit(call, n),
            StepVerb::Block(order) => self.block(order),
            StepVerb::Unblock(target) => self.unblock(target),
            StepVerb::Reset(target) => self.reset(target),
            StepVerb::Buckets(look) => self.buckets(look),
            StepVerb::Reconcile(view) => self.reconcile(view),
            StepVerb::Facts(facts) => self.facts(facts),
            StepVerb::Mode(policy, mode) => {
                self.engine.set_mode(policy, *mode).map_err(Error::from)?;
                Ok(json!({}))
            }
            StepVerb::Reload(catalog) => {
                self.engine.reload(Catalog::clone(catalog));
                Ok(json!({}))
            }
            // The runner executes the steps of a cycle one by one.
            StepVerb::Cycle(_) => Ok(json!({})),
        }
    }

    fn check(&mut self, ask: &CheckStep, keep: Option<&str>, n: usize) -> StepAnswer {
        let filled = FilledCheck::new(ask, n);
        let decision = self.engine.check(&filled.check(ask))?;
        let mut answer = to_json(AsJson(&decision));
        if let Some(outcome) = &ask.outcome {
            answer["settled"] = self.settle_at_once(ask, &decision, outcome)?;
        }
        if let Some(name) = keep {
            match decision.ticket {
                Some(ticket) => drop(self.tickets.insert(name.to_owned(), ticket)),
                // A denied repetition must not leave the ticket of an earlier one.
                None => drop(self.tickets.remove(name)),
            }
        }
        Ok(answer)
    }

    /// Settles a check with the outcome of its own step. A denied check has no ticket, and its
    /// outcome is ignored.
    fn settle_at_once(
        &self,
        ask: &CheckStep,
        decision: &Decision,
        outcome: &Outcome,
    ) -> StepAnswer {
        let Some(ticket) = &decision.ticket else { return Ok(Value::Null) };
        let namespace = &*ask.namespace;
        let check = engine::CheckRef::Ticket(ticket);
        Ok(to_json(AsJson(&self.engine.settle(&Settle { namespace, check, outcome })?)))
    }

    fn peek(&self, ask: &CheckStep, n: usize) -> StepAnswer {
        let filled = FilledCheck::new(ask, n);
        Ok(to_json(AsJson(&self.engine.peek(&filled.check(ask))?)))
    }

    fn settle(&self, call: &SettleStep, n: usize) -> StepAnswer {
        let namespace = &*call.namespace;
        let outcome = &call.outcome;
        let settlement = match &call.check {
            CheckReference::SavedTicket(name) => {
                let ticket = self.tickets.get(name).ok_or_else(|| no_ticket(name))?;
                let check = engine::CheckRef::Ticket(ticket);
                self.engine.settle(&Settle { namespace, check, outcome })?
            }
            CheckReference::Reference(reference, pairs) => {
                let reference = fill(reference, n);
                let pairs = fill_all(pairs, n);
                let check = engine::CheckRef::Reference(&reference, subject(&pairs));
                self.engine.settle(&Settle { namespace, check, outcome })?
            }
        };
        Ok(to_json(AsJson(&settlement)))
    }

    fn credit(&self, call: &CreditStep, n: usize) -> StepAnswer {
        let reference = fill(&call.reference, n);
        let pairs = fill_all(&call.subject, n);
        let subject = subject(&pairs);
        let order = Credit::new(&reference, &call.event, &subject).namespace(&call.namespace);
        let credited = self.engine.credit(&order)?;
        Ok(to_json(AsJson(&credited)))
    }

    fn block(&self, order: &BlockStep) -> StepAnswer {
        let KeyStep { namespace, policy, subject: pairs } = &order.target;
        let proposal = BlockProposal::by_operator(order.span, order.reason.as_deref());
        let blocked = self.engine.block(namespace, policy, &subject(pairs), proposal)?;
        let keys: Vec<Value> = blocked.iter().map(|(key, reply)| key_json(key, reply)).collect();
        Ok(json!({ "keys": keys }))
    }

    fn unblock(&self, target: &KeyStep) -> StepAnswer {
        let subject = subject(&target.subject);
        let was_blocked = self.engine.unblock(&target.namespace, &target.policy, &subject)?;
        Ok(json!({ "was_blocked": was_blocked }))
    }

    fn reset(&self, target: &KeyStep) -> StepAnswer {
        self.engine.reset(&target.namespace, &target.policy, &subject(&target.subject))?;
        Ok(json!({}))
    }

    fn buckets(&self, look: &BucketsStep) -> StepAnswer {
        let subject = subject(&look.subject);
        if let Some(policy) = &look.policy {
            let state = self.engine.bucket_state(&look.namespace, policy, &subject)?;
            return Ok(to_json(AsJson(&state)));
        }
        let states = self.engine.buckets(&look.namespace, &subject)?;
        let states: Vec<_> = states.iter().map(|state| to_json(AsJson(state))).collect();
        Ok(json!({ "states": states }))
    }

    fn reconcile(&self, view: &ReconcileStep) -> StepAnswer {
        let states: Vec<_> = view
            .states
            .iter()
            .map(|(policy, available)| BucketObservation {
                policy,
                available: *available,
                capacity: None,
            })
            .collect();
        let subject = subject(&view.subject);
        let done = self.engine.reconcile(&view.namespace, &subject, view.observed_at, &states)?;
        // The author of a scenario wrote the names: one that is skipped is misspelt.
        if let Some(skipped) = done.skipped.into_iter().next() {
            return Err(Error::from(skipped.why).into());
        }
        let drifts = done.drifts.iter().map(|drift| {
            json!({ "policy": &*drift.policy, "before": drift.before, "after": drift.after })
        });
        Ok(json!({ "states": drifts.collect::<Vec<_>>() }))
    }

    fn facts(&self, facts: &FactStep) -> StepAnswer {
        let namespace = facts.namespace.as_deref();
        let attribute = &*facts.attribute;
        let value = &*facts.value;
        let Some(pairs) = &facts.facts else {
            let known =
                self.engine.forget_facts(namespace, attribute, value).map_err(Error::from)?;
            return Ok(json!({ "were_known": known }));
        };
        let pairs: Vec<_> = pairs.iter().map(|(name, fact)| (&**name, &**fact)).collect();
        self.engine.state_facts(namespace, attribute, value, &pairs).map_err(Error::from)?;
        Ok(json!({}))
    }
}

/// The texts of a check with `{n}` replaced by the number of the repetition.
struct FilledCheck {
    gate: String,
    subject: Pairs,
    reference: Option<String>,
}

impl FilledCheck {
    fn new(ask: &CheckStep, n: usize) -> Self {
        let reference = ask.reference.as_ref().map(|reference| fill(reference, n));
        Self { gate: fill(&ask.gate, n), subject: fill_all(&ask.subject, n), reference }
    }

    fn check<'a>(&'a self, ask: &'a CheckStep) -> Check<'a> {
        Check {
            namespace: &ask.namespace,
            gate: &self.gate,
            subject: subject(&self.subject),
            cost: ask.cost,
            reference: self.reference.as_deref(),
            lists: ask.lists,
        }
    }
}

impl From<Error> for StepRefusal {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Refused(refusal) => refusal.code(),
            _ => "store",
        };
        Self { code: code.to_owned(), message: error.to_string() }
    }
}

fn no_ticket(name: &str) -> StepRefusal {
    let message = format!(
        "the check kept as `{name}` has no ticket: it was denied, or nothing in its gate is settled"
    );
    StepRefusal { code: "no-ticket".to_owned(), message }
}

fn key_json(key: &SubjectKey, reply: &BlockReply) -> Value {
    let parts: BTreeMap<_, _> = key.parts.iter().cloned().collect();
    let block = &reply.block;
    let until = (!block.until.is_forever()).then(|| block.until.to_rfc3339());
    json!({
        "parts": parts,
        "blocked_until": until,
        "origin": origin_name(block.origin),
        "changed": reply.changed,
    })
}

fn fill(text: &str, n: usize) -> String {
    text.replace("{n}", &n.to_string())
}

fn fill_all(pairs: &Pairs, n: usize) -> Pairs {
    pairs.iter().map(|(name, value)| (name.clone(), fill(value, n))).collect()
}

fn subject(pairs: &Pairs) -> Subject<'_> {
    pairs.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// The answers are maps of plain values, whose conversion cannot fail.
fn to_json(answer: impl serde::Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}
