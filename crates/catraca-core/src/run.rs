//! The rules: `run(batch, cells, now)` is the one place where state changes.
//!
//! Stores only load cells, call this and keep what it wrote, inside their own atomicity.
//! Must not read the time, wait, log, or look at anything but its arguments.

mod blocks;
mod check;
mod credit;
mod meter;
mod quick;
mod settle;

use crate::batch::{Batch, Recalled, Reply};
use crate::cell::{Cells, Pool, Reference};
use crate::digest::Key;
use crate::time::Time;

pub use blocks::{RULES_MAX, strikes_key};

/// The same as [`run`] for what most batches are, a check of one bucket that has room; for any
/// other it does nothing. Its reply is small work by itself, so a store that has it written to its
/// own answer at once saves as much as the whole decision costs.
#[inline(always)]
pub fn run_quickly<C: Cells>(batch: &Batch, cells: &mut C, now: Time) -> Option<Reply> {
    let Batch::Check(check) = batch else { return None };
    quick::run(check, cells, now).map(Reply::Check)
}

/// Applies a batch to the cells as of `now`.
pub fn run<C: Cells>(batch: &Batch, cells: &mut C, now: Time) -> Reply {
    match batch {
        Batch::Check(check) => Reply::Check(check::run(check, cells, now)),
        Batch::Settle(settle) => Reply::Settle(settle::run(settle, cells, now)),
        Batch::Recall(key) => Reply::Recall(recall(*key, cells, now)),
        Batch::Credit(credit) => Reply::Credit(credit::run(credit, cells, now)),
        Batch::Block(rows) => Reply::Block(blocks::block(rows, cells, now)),
        Batch::Unblock(keys) => Reply::Unblock(blocks::unblock(keys, cells, now)),
        Batch::Reset(keys) => {
            blocks::reset(keys, cells, now);
            Reply::Reset(now)
        }
        Batch::Reconcile(rows) => Reply::Reconcile(credit::reconcile(rows, cells, now)),
    }
}

fn recall<C: Pool<Reference>>(key: Key, cells: &mut C, now: Time) -> Option<Recalled> {
    let reference = cells.get(key, now)?;
    Some(Recalled {
        ticket: reference.ticket.clone(),
        instants: reference.instants.clone(),
        settled: reference.settled,
        credited: reference.credited.clone(),
    })
}
