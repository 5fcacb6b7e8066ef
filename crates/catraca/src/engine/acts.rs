//! What operators do: block, release, forget, and state facts.

use catraca_core::batch::{Batch, BlockRow, Reply, Standing};
use catraca_core::cell::block::{Act, Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::plan::named;
use catraca_core::refusal::Refusal;
use catraca_core::request::{DEFAULT_NAMESPACE, reason_in_bounds, storable};
use catraca_core::select::normalise;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::{Engine, find};
use crate::error::Error;
use crate::event::{Blocked, Event};
use crate::settlement::BlockedKey;
use crate::store::{Store, StoreError, When};
use crate::world::World;

/// A block that a person orders.
#[derive(Clone, Debug)]
pub struct BlockOrder<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// Whom.
    pub subject: Subject<'a>,
    /// How long; [`Span::FOREVER`] has no end.
    pub span: Span,
    /// Why.
    pub reason: Option<&'a str>,
}

/// A key and its parts as they may be shown.
pub(crate) type NamedKey = (Key, Vec<(String, String)>);
/// The keys that an order means, and since when their policy counts.
pub(crate) type Ordered = (Vec<NamedKey>, Time);

impl<S: Store> Engine<S> {
    /// Blocks a subject under one policy; every key of an `each` policy.
    pub fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        let world = self.world.load();
        let (keys, epoch) = self.ordered(&world, order)?;
        let reply = self.store.apply(&ordering(order, &keys), When::Store)?;
        self.blocked(order, (keys, epoch), reply)
    }

    /// Refuses what [`Engine::block`] would refuse, and changes nothing.
    pub fn peek_block(&self, order: &BlockOrder<'_>) -> Result<(), Error> {
        Ok(self.ordered(&self.world.load(), order).map(drop)?)
    }

    /// Refuses what [`Engine::unblock`] and [`Engine::reset`] would refuse, and changes nothing.
    pub fn peek_act(&self, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        Ok(self.keys(&self.world.load(), DEFAULT_NAMESPACE, policy, subject).map(drop)?)
    }

    /// Ends the blocks of a subject under one policy; says whether any stood.
    pub fn unblock(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys = self.keys(&self.world.load(), namespace, policy, subject)?;
        let reply = self.store.apply(&Batch::Unblock(bare(&keys)), When::Store)?;
        self.unblocked((namespace, policy), keys, reply)
    }

    /// Forgets counters, block, level and ban counts of a subject under one policy.
    pub fn reset(&self, namespace: &str, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        let keys = self.keys(&self.world.load(), namespace, policy, subject)?;
        self.store.apply(&Batch::Reset(bare(&keys)), When::Store)?;
        self.record_reset((namespace, policy), keys);
        Ok(())
    }
}

impl<S> Engine<S> {
    pub(crate) fn ordered(
        &self,
        world: &World,
        order: &BlockOrder<'_>,
    ) -> Result<Ordered, Refusal> {
        if order.span == Span::ZERO {
            return Err(Refusal::NoLength);
        }
        order.reason.map_or(Ok(()), reason_in_bounds)?;
        let keys = self.keys(world, order.namespace, order.policy, &order.subject)?;
        Ok((keys, world.epoch(order.policy)))
    }

    /// Tells of the blocks that stand now.
    pub(crate) fn blocked(
        &self,
        order: &BlockOrder<'_>,
        (keys, epoch): Ordered,
        reply: Reply,
    ) -> Result<Vec<BlockedKey>, Error> {
        let Reply::Block(standing) = reply else {
            return Err(StoreError::odd_reply().into());
        };
        let now = self.clock.now();
        let stands = |one: &Standing| one.changed || one.until > now;
        let refused = !standing.iter().all(stands);
        let all = keys.into_iter().zip(standing).filter(|(_, standing)| stands(standing));
        let all = all.map(|((key, parts), standing)| {
            let (until, origin) = (standing.until, standing.origin);
            self.record(&Event::Blocked(Blocked {
                at: self.clock.now(),
                namespace: order.namespace.to_owned(),
                key,
                epoch,
                policy: order.policy.to_owned(),
                parts: parts.clone(),
                until,
                origin: Origin::Operator,
                note: operator_act(order).note,
                shadow: false,
                forget: Span::ZERO,
            }));
            BlockedKey { key, parts, until, origin, changed: standing.changed }
        });
        let done = all.collect();
        // What did start is told of above: it stands, whatever became of the rest.
        if refused { Err(StoreError::full("blocks").into()) } else { Ok(done) }
    }

    /// Tells of the blocks that ended; says whether any stood.
    pub(crate) fn unblocked(
        &self,
        (namespace, policy): (&str, &str),
        keys: Vec<NamedKey>,
        reply: Reply,
    ) -> Result<bool, Error> {
        let Reply::Unblock(stood) = reply else {
            return Err(StoreError::odd_reply().into());
        };
        let any = stood.contains(&true);
        for ((key, parts), _) in keys.into_iter().zip(stood).filter(|(_, stood)| *stood) {
            let at = self.clock.now();
            self.record(&Event::Unblocked { at, namespace, key, policy, parts });
        }
        Ok(any)
    }

    pub(crate) fn record_reset(&self, (namespace, policy): (&str, &str), keys: Vec<NamedKey>) {
        for (key, parts) in keys {
            let at = self.clock.now();
            self.record(&Event::Reset { at, namespace, key, policy, parts });
        }
    }

    /// States facts about an attribute's value; they come before the catalog's.
    pub fn state_facts(
        &self,
        attribute: &str,
        value: &str,
        facts: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        storable("the attribute's name", attribute)?;
        for (name, fact) in facts {
            storable("the name of a fact", name)?;
            storable(format_args!("the fact `{name}`"), fact)?;
        }
        self.change(|world| {
            let mut next = world.clone();
            let about = normalise(&world.catalog, attribute, value)?;
            for (name, fact) in facts {
                if world.catalog.is_sent(name) {
                    return Err(sent_by_callers(attribute, name));
                }
                let stated = next.facts.state((attribute, &about), name, fact);
                stated.map_err(|owner| owned_by(name, &owner))?;
                let kept = next.stated.state((attribute, &about), name, fact);
                kept.map_err(|owner| owned_by(name, &owner))?;
            }
            Ok(next)
        })
    }

    /// Forgets what was stated about a value; the catalog's own facts stay.
    pub fn forget_facts(&self, attribute: &str, value: &str) -> Result<bool, Refusal> {
        let mut had = false;
        self.change(|world| {
            let about = normalise(&world.catalog, attribute, value)?;
            let mut next = world.clone();
            had = next.stated.forget(attribute, &about);
            Ok::<_, Refusal>(next.with_catalog(world.catalog.clone()))
        })?;
        Ok(had)
    }

    pub(crate) fn keys(
        &self,
        world: &World,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<NamedKey>, Refusal> {
        storable("the namespace", namespace)?;
        let id = find(world, policy)?;
        let scope = self.scope(world, namespace);
        let all = world.selector().parts_of(id, subject)?;
        let keys = all
            .iter()
            .map(|parts| (scope.key(policy, parts), named(&world.catalog, &self.digester, parts)));
        Ok(keys.collect())
    }
}

/// Blocks every key that an order means.
pub(crate) fn ordering(order: &BlockOrder<'_>, keys: &[NamedKey]) -> Batch {
    let act = operator_act(order);
    Batch::Block(keys.iter().map(|(key, _)| BlockRow::new(*key, act.clone())).collect())
}

/// The keys without their names, which no store knows.
pub(crate) fn bare(keys: &[NamedKey]) -> Vec<Key> {
    keys.iter().map(|(key, _)| *key).collect()
}

fn operator_act(order: &BlockOrder<'_>) -> Act {
    let note = Note { reason: order.reason.map(Into::into), ..Note::default() };
    Act { penalty: Penalty::fixed(order.span), origin: Origin::Operator, shadow: false, note }
}

fn sent_by_callers(attribute: &str, name: &str) -> Refusal {
    let why = format!(
        "`{name}` is an attribute that callers send, and as a fact it would shut all of them out; \
         give the fact another name"
    );
    Refusal::BadAttribute { attribute: attribute.to_owned(), why }
}

fn owned_by(name: &str, owner: &str) -> Refusal {
    let why = format!("the fact `{name}` already comes from `{owner}`; one name has one source");
    Refusal::BadAttribute { attribute: owner.to_owned(), why }
}
