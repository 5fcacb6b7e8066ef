//! Settling and crediting with other nodes; what was decided alone is settled alone.
//!
//! Must not guess: while the store is away its tickets are refused, and may be settled later.

use catraca_core::batch::{Batch, Recalled, RowSettled, SettleReply, SettleRow};
use catraca_core::digest::Key;
use catraca_core::settle::SettlePlan;
use catraca_core::subject::Subject;
use catraca_core::ticket::Ticket;
use catraca_core::time::Time;

use super::SharedEngine;
use super::owing::Owed;
use crate::engine::{CreditCall, Opened, Settle, given, note_of, recalled, settled};
use crate::error::Error;
use crate::settlement::{Credited, Settlement};
use crate::store::{SharedStore, StoreError};

/// Where a reference was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Shared,
    Alone,
}

impl<S: SharedStore> SharedEngine<S> {
    /// Applies the outcome of an admitted check, once.
    pub async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        let world = self.engine.world_now();
        let ticket = match self.engine.opened(&world, call)? {
            Opened::Ticket(ticket) => *ticket,
            Opened::Reference(key) => {
                let (found, _) = self.recall(key).await?;
                self.engine.owned_ticket(&world, call, found)?
            }
        };
        let plan = self.engine.plan_settle(&world, call, &ticket)?;
        let reply = self.settled(&ticket, &plan).await?;
        self.learn_settle(&ticket, &plan, &reply);
        Ok(self.engine.conclude_settle(&world, call, (&ticket, &plan), &reply))
    }

    /// Gives back for a late event, once per reference and event.
    pub async fn credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<Credited, Error> {
        let world = self.engine.world_now();
        let call = CreditCall { namespace, reference, event, subject };
        let key = self.engine.credit_key(&world, &call)?;
        let (found, place) = self.recall(key).await?;
        let credited = match self.engine.plan_credit(&world, &call, (key, found.as_ref()))? {
            Ok(plan) => {
                let batch = Batch::Credit(plan.batch);
                let reply = match place {
                    Place::Shared => self.ask(&batch).await?,
                    Place::Alone => self.apply_alone(&batch)?,
                };
                given(&world, &plan.policies, reply)?
            }
            Err(reason) => Err(reason),
        };
        self.engine.record_credit(event, &credited);
        Ok(credited)
    }

    async fn settled(&self, ticket: &Ticket, plan: &SettlePlan) -> Result<SettleReply, Error> {
        if !ticket.body.local {
            return settled(self.ask(&Batch::Settle(plan.batch.clone())).await?);
        }
        let mut batch = plan.batch.clone();
        batch.rows.iter_mut().for_each(|row| row.limit = row.limit.share(self.nodes()));
        settled(self.apply_alone(&Batch::Settle(batch))?)
    }

    /// What the store remembers; what this node remembers when it was alone.
    async fn recall(&self, key: Key) -> Result<(Option<Recalled>, Place), Error> {
        let batch = Batch::Recall(key);
        let asked = self.ask(&batch).await;
        if let Ok(reply) = asked {
            if let Some(found) = recalled(reply)? {
                return Ok((Some(found), Place::Shared));
            }
            return Ok((recalled(self.apply_alone(&batch)?)?, Place::Alone));
        }
        match recalled(self.apply_alone(&batch)?)? {
            Some(found) => Ok((Some(found), Place::Alone)),
            None => Err(asked.err().unwrap_or_else(StoreError::odd_reply).into()),
        }
    }

    fn learn_settle(&self, ticket: &Ticket, plan: &SettlePlan, reply: &SettleReply) {
        let SettleReply::Settled { now, rows, again: false } = reply else { return };
        if !ticket.body.local {
            self.warm_settle(plan);
        }
        for (asked, done) in plan.batch.rows.iter().zip(rows).filter(|(row, _)| !row.shadow) {
            self.learn_ban(ticket, asked, done, *now);
        }
    }

    fn learn_ban(&self, ticket: &Ticket, asked: &SettleRow, done: &RowSettled, now: Time) {
        let Some((origin, until)) = done.started.zip(done.blocked_until) else { return };
        let (note, until) = (note_of(asked, done), self.here(until, now));
        let ban = Owed { key: asked.key, until, origin, shadow: false, note };
        match ticket.body.local {
            true => self.owing.add(ban),
            false => self.note_block(ban),
        }
    }

    /// The real cost is taken from this node's part too; only the store bans.
    fn warm_settle(&self, plan: &SettlePlan) {
        let mut batch = plan.batch.clone();
        for row in &mut batch.rows {
            row.limit = row.limit.share(self.nodes());
            (row.penalty, row.upstream, row.watch) = (None, None, None);
            row.bans.clear();
        }
        batch.reference = None;
        self.mirror(&Batch::Settle(batch));
    }
}
