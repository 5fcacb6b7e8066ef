//! Checking with other nodes: what this node knows, else one trip, else alone.

use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, CheckReply};
use catraca_core::decision::Decision;
use catraca_core::request::Check;

use super::SharedEngine;
use super::alone;
use super::owing::Owed;
use crate::engine::{Planned, Prepared, checked};
use crate::error::Error;
use crate::event::Event;
use crate::store::SharedStore;
use crate::world::World;

impl<S: SharedStore> SharedEngine<S> {
    /// May this caller pass now? Charges every policy of the gate, or none.
    pub async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let world = self.engine.world_now();
        let decision = self.decide(&world, check, false).await?;
        let (namespace, gate) = (check.namespace, check.gate);
        self.engine.record(&Event::Decided { namespace, gate, decision: &decision });
        Ok(decision)
    }

    /// What a check would answer; charges nothing and starts nothing.
    pub async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let world = self.engine.world_now();
        self.decide(&world, check, true).await
    }

    async fn decide(
        &self,
        world: &World,
        check: &Check<'_>,
        peek: bool,
    ) -> Result<Decision, Error> {
        let planned = match self.engine.plan_check(world, check, peek)? {
            Prepared::Listed(decision) => return Ok(*decision),
            Prepared::Planned(planned) => planned,
        };
        if let Some((place, reply)) = self.known_block(&planned.plan.batch) {
            return Ok(self.deny_known(world, check, alone::only_row(planned, place), &reply));
        }
        match self.ask(&planned.plan.batch).await.map_err(Error::from).and_then(checked) {
            Ok(reply) => {
                self.learn(world, &planned, &reply);
                Ok(self.engine.conclude_check(world, check, planned, &reply))
            }
            // Whatever failed was not the caller's doing: the input was judged before.
            Err(_) => self.decide_alone(world, check, planned),
        }
    }

    /// The first row whose block was seen a moment ago, and what is to be said of it.
    fn known_block(&self, batch: &Batch) -> Option<(usize, CheckReply)> {
        let Batch::Check(asked) = batch else { return None };
        if !self.options.deny_cache || asked.peek {
            return None;
        }
        let here = self.engine.now();
        let (place, (row, now)) = asked
            .rows
            .iter()
            .enumerate()
            .find_map(|(place, row)| Some((place, self.known.fresh(row, here)?)))?;
        let rows = [row].into_iter().collect();
        Some((place, CheckReply { now, passed: false, remembered: false, rows }))
    }

    /// A known block denies by itself; nothing else is looked at.
    fn deny_known(
        &self,
        world: &World,
        check: &Check<'_>,
        only: Planned<'_, '_>,
        reply: &CheckReply,
    ) -> Decision {
        self.cached.fetch_add(1, Ordering::Relaxed);
        let decision = self.engine.conclude_check(world, check, only, reply);
        Decision { cached: true, ..decision }
    }

    /// What a reply teaches: who is blocked, who no longer is, and what this node let through.
    fn learn(&self, world: &World, planned: &Planned<'_, '_>, reply: &CheckReply) {
        let Batch::Check(asked) = &planned.plan.batch else { return };
        if asked.peek {
            return;
        }
        let here = self.engine.now();
        for (row, answer) in asked.rows.iter().zip(&reply.rows).filter(|(row, _)| !row.shadow) {
            match &answer.block {
                Some(block) => {
                    if self.known.learn(row, answer, (here, reply.now)) {
                        let until = self.here(block.until, reply.now);
                        self.note_block(Owed::shown(row.key, block, until, false));
                    }
                }
                None => self.note_free(row.key),
            }
        }
        // This node's own part is charged too, so that it has not everything to give when it is
        // alone.
        if let Some(charge) =
            alone::warming(&world.catalog, &planned.plan, self.nodes()).filter(|_| reply.passed)
        {
            self.mirror(&Batch::Check(charge));
        }
    }

    /// Decides by this node's own part of each limit, by each policy's `on_failure`.
    fn decide_alone(
        &self,
        world: &World,
        check: &Check<'_>,
        mut planned: Planned<'_, '_>,
    ) -> Result<Decision, Error> {
        let hows = alone::hows(&world.catalog, &planned.plan);
        alone::stand_in(&mut planned.plan, &hows, self.nodes());
        let mut reply = checked(self.apply_alone(&planned.plan.batch)?)?;
        alone::close(&mut reply, &hows);
        self.owe(&planned.plan.batch, &reply);
        let mut decision = self.engine.conclude_check(world, check, planned, &reply);
        decision.degraded = true;
        Ok(decision)
    }

    fn owe(&self, batch: &Batch, reply: &CheckReply) {
        let Batch::Check(asked) = batch else { return };
        for (row, answer) in asked.rows.iter().zip(&reply.rows).filter(|(_, a)| a.started) {
            if let Some(block) = &answer.block {
                self.owing.add(Owed::shown(row.key, block, block.until, row.shadow));
                self.breaker.hold("it has to be told of a block that it missed");
            }
        }
    }

    pub(super) fn nodes(&self) -> i64 {
        i64::from(self.options.nodes.max(1))
    }

    /// Does on this node what the store has done. What finds no room here is in the store.
    pub(super) fn mirror(&self, batch: &Batch) {
        let _ = self.apply_alone(batch);
    }
}
