//! The rules of rate limiting: `run(batch, cells, now)` is the only function that changes cells.
//!
//! A store loads the cells of a batch, calls `run` while it holds their locks, and saves the cells
//! that were written. The rules must be a function of their arguments alone: the Redis script has
//! to produce the same replies (docs/batch.md).

mod blocks;
mod check;
mod credit;
mod fast_path;
mod meter;
mod peek_cells;
mod settle;

use crate::batch::{Batch, Reply, StoredReference};
use crate::cell::{CellStore, CellTable, Reference};
use crate::digest::Key;
use crate::time::Time;

pub use blocks::{RULES_MAX, strikes_key};

/// [`run`] for the most common batch: a check of one existing bucket that has room and no block.
/// Returns `None`, with nothing changed, for every other batch.
///
/// Inlined into the store, so that the reply is built in place: copying it costs as much as the
/// decision itself.
#[inline(always)]
pub fn run_fast_path<C: CellStore>(batch: &Batch, cells: &mut C, now: Time) -> Option<Reply> {
    let Batch::Check(check) = batch else { return None };
    fast_path::run(check, cells, now).map(Reply::Check)
}

/// Applies a batch to the cells at the instant `now`, and returns the reply.
pub fn run<C: CellStore>(batch: &Batch, cells: &mut C, now: Time) -> Reply {
    match batch {
        Batch::Check(check) => Reply::Check(check::run(check, cells, now)),
        Batch::Settle(settle) => Reply::Settle(settle::run(settle, cells, now)),
        Batch::Recall(key) => Reply::Recall(recall(*key, cells, now)),
        Batch::Credit(credit) => Reply::Credit(credit::run(credit, cells, now)),
        Batch::Block(rows) => Reply::Block(blocks::block(rows, cells, now)),
        Batch::Unblock(rows) => Reply::Unblock(blocks::unblock(rows, cells, now)),
        Batch::Reset(keys) => {
            blocks::reset(keys, cells, now);
            Reply::Reset(now)
        }
        Batch::Reconcile(rows) => Reply::Reconcile(credit::reconcile(rows, cells, now)),
    }
}

fn recall<C: CellTable<Reference>>(key: Key, cells: &mut C, now: Time) -> Option<StoredReference> {
    let reference = cells.get(key, now)?;
    Some(StoredReference {
        ticket: reference.ticket.clone(),
        instants: reference.instants.clone(),
        settled: reference.settled,
        credited: reference.credited.clone(),
    })
}
