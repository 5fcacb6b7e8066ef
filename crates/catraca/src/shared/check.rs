//! Check over a shared store: from the block cache, else by one call, else by the local fallback.

use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, CheckReply};
use catraca_core::decision::Decision;
use catraca_core::request::Check;

use super::SharedEngine;
use super::local_fallback;
use super::unsynced_blocks::UnsyncedBlock;
use crate::engine::{PlannedCheck, PreparedCheck, check_reply};
use crate::error::Error;
use crate::event::Event;
use crate::rule_set::RuleSet;
use crate::store::SharedStore;

impl<S: SharedStore> SharedEngine<S> {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    pub async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.engine.rules_snapshot();
        let decision = self.decide(&rules, check, false).await?;
        self.engine.emit(&Event::Decided {
            namespace: check.namespace,
            gate: check.gate,
            decision: &decision,
        });
        Ok(decision)
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    pub async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.engine.rules_snapshot();
        self.decide(&rules, check, true).await
    }

    async fn decide(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        peek: bool,
    ) -> Result<Decision, Error> {
        let planned = match self.engine.plan_check(rules, check, peek)? {
            PreparedCheck::ByList(decision) => return Ok(*decision),
            PreparedCheck::ByStore(planned) => planned,
        };
        if let Some((index, reply)) = self.find_cached_block(&planned.plan.batch) {
            return Ok(self.deny_cached(
                rules,
                check,
                local_fallback::only_row(planned, index),
                &reply,
            ));
        }
        match self.call_store(&planned.plan.batch).await.map_err(Error::from).and_then(check_reply)
        {
            Ok(reply) => {
                self.update_from_reply(rules, &planned, &reply);
                Ok(self.engine.conclude_check(rules, check, planned, &reply))
            }
            // Invalid input was refused above, so any error here is the store's.
            Err(_) => self.decide_locally(rules, check, planned),
        }
    }

    /// The index of the first row with a fresh cached block, and the reply for it.
    fn find_cached_block(&self, batch: &Batch) -> Option<(usize, CheckReply)> {
        let Batch::Check(check_batch) = batch else { return None };
        if !self.options.deny_cache || check_batch.peek {
            return None;
        }
        let here = self.engine.now();
        let (index, (row, now)) = check_batch
            .rows
            .iter()
            .enumerate()
            .find_map(|(index, row)| Some((index, self.block_cache.get_fresh(row, here)?)))?;
        let rows = [row].into_iter().collect();
        Some((index, CheckReply { now, passed: false, remembered: false, rows }))
    }

    /// Denies because of a cached block; the other rows are not evaluated.
    fn deny_cached(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        only: PlannedCheck<'_, '_>,
        reply: &CheckReply,
    ) -> Decision {
        self.cached_denials.fetch_add(1, Ordering::Relaxed);
        let decision = self.engine.conclude_check(rules, check, only, reply);
        Decision { cached: true, ..decision }
    }

    /// Updates the block cache, the fallback's blocks and its counters from a reply of the store.
    fn update_from_reply(
        &self,
        rules: &RuleSet,
        planned: &PlannedCheck<'_, '_>,
        reply: &CheckReply,
    ) {
        let Batch::Check(check_batch) = &planned.plan.batch else { return };
        if check_batch.peek {
            return;
        }
        let here = self.engine.now();
        for (row, row_reply) in
            check_batch.rows.iter().zip(&reply.rows).filter(|(row, _)| !row.shadow)
        {
            match &row_reply.block {
                Some(block) => {
                    if self.block_cache.insert(row, row_reply, here, reply.now) {
                        let until = self.to_local_time(block.until, reply.now);
                        self.store_block_locally(UnsyncedBlock::from_reply(
                            row.key, block, until, false,
                        ));
                    }
                }
                None => self.remove_block_locally(row.key),
            }
        }
        // Admissions are charged to the fallback too, so that it does not start with full limits.
        if let Some(charge) =
            local_fallback::local_charge(&rules.catalog, &planned.plan, self.nodes())
                .filter(|_| reply.passed)
        {
            self.mirror(&Batch::Check(charge));
        }
    }

    /// Decides with the local fallback: this node's share of each limit, by each policy's
    /// `on_failure`.
    fn decide_locally(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        mut planned: PlannedCheck<'_, '_>,
    ) -> Result<Decision, Error> {
        let failure_modes = local_fallback::failure_modes(&rules.catalog, &planned.plan);
        local_fallback::to_local_plan(&mut planned.plan, &failure_modes, self.nodes());
        let mut reply = check_reply(self.apply_locally(&planned.plan.batch)?)?;
        local_fallback::mark_unavailable(&mut reply, &failure_modes);
        self.note_unsynced(&planned.plan.batch, &reply);
        let mut decision = self.engine.conclude_check(rules, check, planned, &reply);
        decision.degraded = true;
        Ok(decision)
    }

    fn note_unsynced(&self, batch: &Batch, reply: &CheckReply) {
        let Batch::Check(check_batch) = batch else { return };
        for (row, row_reply) in
            check_batch.rows.iter().zip(&reply.rows).filter(|(_, row_reply)| row_reply.started)
        {
            if let Some(block) = &row_reply.block {
                self.unsynced.add(UnsyncedBlock::from_reply(
                    row.key,
                    block,
                    block.until,
                    row.shadow,
                ));
                self.breaker.open_for_sync(
                    "a block was started without the store and is written to it first",
                );
            }
        }
    }

    pub(super) fn nodes(&self) -> i64 {
        i64::from(self.options.nodes.max(1))
    }

    /// Applies a batch to the fallback that the store has applied. An error is ignored: the store
    /// has the state.
    pub(super) fn mirror(&self, batch: &Batch) {
        let _ = self.apply_locally(batch);
    }
}
