//! Blocks of a key: start, extend, release, and the reset of all state of a key.
//!
//! Only a release may move the end of a block earlier.

use crate::batch::{BlockReply, SAME_END, UnblockRow};
use crate::cell::block::{BlockProposal, PriorOffences};
use crate::cell::{self, Block, Cell, CellStore, CellTable, SlidingWindow};
use crate::digest::Key;
use crate::time::{Span, Time};

/// The most ban rules of a policy. Each rule stores its strikes in a cell of its own, whose key is
/// derived from the row's key.
pub const RULES_MAX: u8 = 16;

/// The key of the strikes of a ban rule: kinds 1 to 16 of the row's key (docs/batch.md, 2).
pub fn strikes_key(key: Key, rule: u8) -> Key {
    key.with_kind(rule + 1)
}

/// The active block of a key; an enforcing row ignores shadow blocks.
#[inline]
pub fn active_block<C: CellTable<Block>>(
    key: Key,
    shadow: bool,
    cells: &mut C,
    now: Time,
) -> Option<&Block> {
    cells.get(key, now).map(|block| &*block).filter(|block| block.is_active(now, shadow))
}

/// Proposes a block. Returns whether a block started, or its end or mode changed. If the pool of
/// blocks is full, no block starts.
pub fn propose_block<C: CellTable<Block>>(
    key: Key,
    proposal: &BlockProposal,
    cells: &mut C,
    now: Time,
) -> bool {
    let current: Option<&mut Block> = cells.get(key, now);
    let before = current.as_ref().map(|block| (block.until, block.shadow));
    let next = match current {
        Some(block) => block.apply(proposal, now),
        None => Some(Block::from_proposal(proposal, now)),
    };
    // A proposal that only raises the level is written, but not reported as a change.
    let changed = next.as_ref().map(|block| (block.until, block.shadow)) != before;
    next.is_some_and(|block| cells.put(key, block, now) && changed)
}

/// Blocks keys on behalf of an operator, or again from the records.
pub fn block<C: CellStore>(
    rows: &[(Key, BlockProposal)],
    cells: &mut C,
    now: Time,
) -> Vec<Option<BlockReply>> {
    rows.iter().map(|(key, proposal)| block_one(*key, proposal, cells, now)).collect()
}

fn block_one<C: CellStore>(
    key: Key,
    proposal: &BlockProposal,
    cells: &mut C,
    now: Time,
) -> Option<BlockReply> {
    // Prior offences come with blocks that the records hold. Level 0 means that there are none. A
    // length of zero says that the block itself has ended and only its level remains.
    let prior = proposal.prior_offences.filter(|prior| prior.level > 0);
    let has_ended = prior.is_some() && proposal.penalty.length(0) == Span::ZERO;
    let changed = !has_ended && propose_block(key, proposal, cells, now);
    if let Some(prior) = prior {
        restore_level(key, proposal, prior, cells, now);
    }
    // Operators see shadow blocks too.
    let block = active_block(key, true, cells, now)?.clone();
    Some(BlockReply { block, changed })
}

/// Restores the level of prior offences, unless the store already knows a higher one, or remembers
/// the same one as long.
fn restore_level<C: CellTable<Block>>(
    key: Key,
    proposal: &BlockProposal,
    prior: PriorOffences,
    cells: &mut C,
    now: Time,
) {
    let stored: Option<&mut Block> = cells.get(key, now);
    let stored = stored.map(|block| block.clone());
    // Without a cell, the level is stored in the block that the proposal would start. One of length
    // zero keeps its true end, because a later act that does not escalate moves the end alone.
    let block = stored.unwrap_or_else(|| {
        let block = Block::from_proposal(proposal, now);
        let until = if block.until > now { block.until } else { now.before(prior.since_end) };
        Block { until, ..block }
    });
    if block.shadow != proposal.shadow || block.level > prior.level {
        return;
    }
    let is_higher = prior.level > block.level;
    let expires_at = block.expires_at();
    let restored = block.with_prior_offences(prior, now);
    if is_higher || restored.expires_at() > expires_at {
        cells.put(key, restored, now);
    }
}

/// Releases blocks. Returns for each key whether its block was released.
pub fn unblock<C: CellStore>(rows: &[UnblockRow], cells: &mut C, now: Time) -> Vec<bool> {
    rows.iter().map(|row| unblock_one(*row, cells, now)).collect()
}

fn unblock_one<C: CellTable<Block>>(row: UnblockRow, cells: &mut C, now: Time) -> bool {
    let Some(block) = active_block(row.key, true, cells, now).cloned() else { return false };
    if row.only_until.is_some_and(|until| !is_same_end(until, block.until)) {
        return false;
    }
    // The cell stays, because the level is remembered after the block.
    cells.put(row.key, block.release(now), now);
    true
}

/// A block that a node wrote again after the store had lost it ends a little later, because the
/// call took time.
fn is_same_end(read: Time, stored: Time) -> bool {
    read.micros().abs_diff(stored.micros()) <= SAME_END.micros().unsigned_abs()
}

/// Removes all counters, blocks, strikes and ratios of keys. Settled-markers and references have
/// keys of their own and stay.
pub fn reset<C: CellStore>(keys: &[Key], cells: &mut C, now: Time) {
    for key in keys {
        // Every kind and every possible rule: a store knows no policies, and the algorithm of the
        // policy may have changed.
        cell::reset(*key, cells, now);
        for rule in 0..RULES_MAX {
            CellTable::<SlidingWindow>::remove(cells, strikes_key(*key, rule), now);
        }
    }
}
