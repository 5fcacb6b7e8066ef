//! From events to records: what the engine tells becomes what is kept.
//!
//! Must not wait: it runs on the thread that decides.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;

use catraca_core::time::Time;

use super::Records;
use super::receipt::Receipt;
use super::record::{Blocking, Debt, Deed, PolicyReset, Record, Revision, Who};
use crate::event::Event;

/// An operator's act in the making, on this thread.
#[derive(Default)]
struct Gathering {
    by: Option<String>,
    why: Option<String>,
    records: Vec<Record>,
}

thread_local! {
    static GATHERING: RefCell<Option<Gathering>> = const { RefCell::new(None) };
}

impl Records {
    /// Takes an event; the engine's listener. Nobody waits: a block that a check starts is on its
    /// way to the disk when this returns.
    pub fn hear(&self, event: &Event<'_>) {
        if let Event::Decided { namespace, gate, decision } = event {
            return self.tally.count(namespace, gate, decision);
        }
        let Some((at, deed)) = deed(event) else { return };
        let alone = GATHERING.with_borrow_mut(|gathering| match gathering {
            Some(gathering) => {
                gathering.add(at, deed);
                None
            }
            None => Some(Record::automatic(at, deed)),
        });
        if let Some(record) = alone {
            self.queue.submit(vec![record], None);
        }
    }

    /// Runs a call to the engine and gives a receipt for all that it caused on this thread, written
    /// together or not at all. With an operator's name, it is audited.
    pub fn acknowledged<R>(
        &self,
        by: Option<&str>,
        why: Option<&str>,
        call: impl FnOnce() -> R,
    ) -> (R, Receipt) {
        let fresh =
            Gathering { by: by.map(Into::into), why: why.map(Into::into), ..Default::default() };
        let outer = Outer(GATHERING.replace(Some(fresh)));
        let answer = call();
        let gathered = GATHERING.with_borrow_mut(Option::take).unwrap_or_default();
        drop(outer);
        (answer, self.record(gathered.records))
    }
}

impl Records {
    /// The same for a call that is awaited: what it causes while it runs is gathered, on whatever
    /// thread that is.
    pub async fn acknowledged_later<R>(
        &self,
        by: Option<&str>,
        why: Option<&str>,
        call: impl Future<Output = R>,
    ) -> (R, Receipt) {
        let fresh =
            Gathering { by: by.map(Into::into), why: why.map(Into::into), ..Default::default() };
        let mut gathering = Some(fresh);
        let mut call = pin!(call);
        let answer = poll_fn(|context| {
            let _outer = Outer(GATHERING.replace(gathering.take()));
            let polled = call.as_mut().poll(context);
            gathering = GATHERING.take();
            polled
        });
        let answer = answer.await;
        (answer, self.record(gathering.unwrap_or_default().records))
    }
}

/// What was being gathered outside; put back however the call ends.
struct Outer(Option<Gathering>);

impl Drop for Outer {
    fn drop(&mut self) {
        GATHERING.set(self.0.take());
    }
}

impl Gathering {
    fn add(&mut self, at: Time, deed: Deed) {
        let (by, why) = (self.by.clone(), self.why.clone());
        self.records.push(Record { at, by, why, deed });
    }
}

fn deed(event: &Event<'_>) -> Option<(Time, Deed)> {
    let who = |namespace: &str, key, policy: &str, parts: &[(String, String)]| Who {
        key,
        namespace: namespace.to_owned(),
        policy: policy.to_owned(),
        parts: parts.to_vec(),
    };
    match event {
        Event::Blocked(block) => {
            let who = who(&block.namespace, block.key, &block.policy, &block.parts);
            let (until, origin, note) = (block.until, block.origin, block.note.clone());
            let (epoch, shadow, forget) = (block.epoch, block.shadow, block.forget);
            let blocking = Blocking { who, epoch, until, origin, note, shadow, forget };
            Some((block.at, Deed::Block(Box::new(blocking))))
        }
        Event::Unblocked { at, namespace, key, policy, parts } => {
            Some((*at, Deed::Release(who(namespace, *key, policy, parts))))
        }
        Event::Reset { at, namespace, key, policy, parts } => {
            Some((*at, Deed::Reset(who(namespace, *key, policy, parts))))
        }
        Event::PolicyReset { at, policy, epoch } => {
            let reset = PolicyReset { policy: (*policy).to_owned(), epoch: *epoch };
            Some((*at, Deed::ResetPolicy(reset)))
        }
        Event::Owed(owed) => {
            let who = who(&owed.namespace, owed.key, &owed.policy, &owed.parts);
            let debt = Debt { who, epoch: owed.epoch, balance: owed.balance, terms: owed.terms };
            Some((owed.at, Deed::Owe(Box::new(debt))))
        }
        Event::Catalog { at, revision, policies } => {
            let revision = Revision { revision: (*revision).to_owned(), policies: Some(*policies) };
            Some((*at, Deed::Revise(revision)))
        }
        _ => None,
    }
}
