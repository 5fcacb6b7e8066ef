//! Doing a verb: the one place where a scenario meets the engine, and its answers become JSON.
//!
//! Must not compare, nor move the clock.

use std::collections::BTreeMap;

use catraca::settlement::BlockedKey;
use catraca::shape::{Shape, origin};
use catraca::{
    BlockOrder, Catalog, Check, Engine, Error, ManualClock, Observed, Secret, Settle, Subject, Time,
};
use catraca::{Decision, Outcome, engine};
use serde_json::{Value, json};

use super::verb::{Ask, Blocking, Crediting, Looking, Pairs, Reconciling, Settling, Stating};
use super::verb::{Stub, Target, Verb};

/// Pseudonyms and keys must be the same in every run.
const SECRET: [u8; 32] = *b"a secret that scenarios all know";

/// An engine on a manual clock, with the tickets that steps have kept.
pub(super) struct Stage {
    engine: Engine,
    pub clock: ManualClock,
    tickets: BTreeMap<String, String>,
}

/// A call that had no answer.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub code: String,
    pub message: String,
}

type Answer = Result<Value, Refused>;

impl Stage {
    pub fn new(catalog: Catalog, start: Time) -> Self {
        let clock = ManualClock::at(start);
        let secret = Secret::from_bytes(SECRET);
        let engine = Engine::builder(catalog).clock(clock.clone()).secret(secret).build();
        Self { engine, clock, tickets: BTreeMap::new() }
    }

    /// Does a verb for the `n`-th time; a ticket is kept under `keep`.
    pub fn act(&mut self, verb: &Verb, keep: Option<&str>, n: usize) -> Answer {
        match verb {
            Verb::Check(ask) => self.check(ask, keep, n),
            Verb::Peek(ask) => self.peek(ask, n),
            Verb::Settle(call) => self.settle(call, n),
            Verb::Credit(call) => self.credit(call, n),
            Verb::Block(order) => self.block(order),
            Verb::Unblock(target) => self.unblock(target),
            Verb::Reset(target) => self.reset(target),
            Verb::Buckets(look) => self.buckets(look),
            Verb::Reconcile(view) => self.reconcile(view),
            Verb::Facts(facts) => self.facts(facts),
            Verb::Mode(policy, mode) => {
                self.engine.set_mode(policy, *mode).map_err(Error::from)?;
                Ok(json!({}))
            }
            Verb::Reload(catalog) => {
                self.engine.reload(Catalog::clone(catalog));
                Ok(json!({}))
            }
            Verb::Cycle(_) => Ok(json!({})),
        }
    }

    fn check(&mut self, ask: &Ask, keep: Option<&str>, n: usize) -> Answer {
        let filled = Filled::new(ask, n);
        let decision = self.engine.check(&filled.check(ask))?;
        let mut answer = shown(Shape(&decision));
        if let Some(outcome) = &ask.outcome {
            answer["settled"] = self.settle_at_once(ask, &decision, outcome)?;
        }
        if let Some(name) = keep {
            match decision.ticket {
                Some(ticket) => drop(self.tickets.insert(name.to_owned(), ticket)),
                None => drop(self.tickets.remove(name)),
            }
        }
        Ok(answer)
    }

    /// The outcome of a check that was denied or has no ticket is ignored.
    fn settle_at_once(&self, ask: &Ask, decision: &Decision, outcome: &Outcome) -> Answer {
        let Some(ticket) = &decision.ticket else { return Ok(Value::Null) };
        let (namespace, stub) = (&*ask.namespace, engine::Stub::Ticket(ticket));
        Ok(shown(Shape(&self.engine.settle(&Settle { namespace, stub, outcome })?)))
    }

    fn peek(&self, ask: &Ask, n: usize) -> Answer {
        let filled = Filled::new(ask, n);
        Ok(shown(Shape(&self.engine.peek(&filled.check(ask))?)))
    }

    fn settle(&self, call: &Settling, n: usize) -> Answer {
        let (namespace, outcome) = (&*call.namespace, &call.outcome);
        let settlement = match &call.stub {
            Stub::Kept(name) => {
                let ticket = self.tickets.get(name).ok_or_else(|| no_ticket(name))?;
                let stub = engine::Stub::Ticket(ticket);
                self.engine.settle(&Settle { namespace, stub, outcome })?
            }
            Stub::Reference(reference, pairs) => {
                let (reference, pairs) = (fill(reference, n), fill_all(pairs, n));
                let stub = engine::Stub::Reference(&reference, subject(&pairs));
                self.engine.settle(&Settle { namespace, stub, outcome })?
            }
        };
        Ok(shown(Shape(&settlement)))
    }

    fn credit(&self, call: &Crediting, n: usize) -> Answer {
        let (reference, pairs) = (fill(&call.reference, n), fill_all(&call.subject, n));
        let subject = subject(&pairs);
        let credited = self.engine.credit(&call.namespace, &reference, &call.event, &subject)?;
        Ok(shown(Shape(&credited)))
    }

    fn block(&self, order: &Blocking) -> Answer {
        let blocked = self.engine.block(&BlockOrder {
            namespace: &order.target.namespace,
            policy: &order.target.policy,
            subject: subject(&order.target.subject),
            span: order.span,
            reason: order.reason.as_deref(),
        })?;
        Ok(json!({ "keys": blocked.iter().map(key).collect::<Vec<_>>() }))
    }

    fn unblock(&self, target: &Target) -> Answer {
        let subject = subject(&target.subject);
        let stood = self.engine.unblock(&target.namespace, &target.policy, &subject)?;
        Ok(json!({ "was_blocked": stood }))
    }

    fn reset(&self, target: &Target) -> Answer {
        self.engine.reset(&target.namespace, &target.policy, &subject(&target.subject))?;
        Ok(json!({}))
    }

    fn buckets(&self, look: &Looking) -> Answer {
        let subject = subject(&look.subject);
        if let Some(policy) = &look.policy {
            let state = self.engine.bucket_state(&look.namespace, policy, &subject)?;
            return Ok(shown(Shape(&state)));
        }
        let states = self.engine.buckets(&look.namespace, &subject)?;
        Ok(json!({ "states": states.iter().map(|state| shown(Shape(state))).collect::<Vec<_>>() }))
    }

    fn reconcile(&self, view: &Reconciling) -> Answer {
        let states: Vec<_> = view
            .states
            .iter()
            .map(|(policy, available)| Observed { policy, available: *available })
            .collect();
        let subject = subject(&view.subject);
        let drifts = self.engine.reconcile(&view.namespace, &subject, view.observed_at, &states)?;
        let drifts = drifts.iter().map(|drift| {
            json!({ "policy": &*drift.policy, "before": drift.before, "after": drift.after })
        });
        Ok(json!({ "states": drifts.collect::<Vec<_>>() }))
    }

    fn facts(&self, facts: &Stating) -> Answer {
        let (attribute, value) = (&*facts.attribute, &*facts.value);
        let Some(pairs) = &facts.facts else {
            let known = self.engine.forget_facts(attribute, value).map_err(Error::from)?;
            return Ok(json!({ "were_known": known }));
        };
        let pairs: Vec<_> = pairs.iter().map(|(name, fact)| (&**name, &**fact)).collect();
        self.engine.state_facts(attribute, value, &pairs).map_err(Error::from)?;
        Ok(json!({}))
    }
}

/// A check's texts with the number of the repetition in them.
struct Filled {
    gate: String,
    subject: Pairs,
    reference: Option<String>,
}

impl Filled {
    fn new(ask: &Ask, n: usize) -> Self {
        let reference = ask.reference.as_ref().map(|reference| fill(reference, n));
        Self { gate: fill(&ask.gate, n), subject: fill_all(&ask.subject, n), reference }
    }

    fn check<'a>(&'a self, ask: &'a Ask) -> Check<'a> {
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

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Refused(refusal) => refusal.code(),
            _ => "store",
        };
        Self { code: code.to_owned(), message: error.to_string() }
    }
}

fn no_ticket(name: &str) -> Refused {
    let message = format!(
        "the check kept as `{name}` has no ticket: it was denied, or nothing in its gate is settled"
    );
    Refused { code: "no-ticket".to_owned(), message }
}

fn key(blocked: &BlockedKey) -> Value {
    let parts: BTreeMap<_, _> = blocked.parts.iter().cloned().collect();
    let until = (!blocked.until.is_forever()).then(|| blocked.until.to_rfc3339());
    json!({
        "parts": parts,
        "blocked_until": until,
        "origin": origin(blocked.origin),
        "changed": blocked.changed,
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

/// Shapes are maps of plain values, which always become JSON.
fn shown(shape: impl serde::Serialize) -> Value {
    serde_json::to_value(shape).unwrap_or_default()
}
