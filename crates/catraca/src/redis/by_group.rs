//! The groups of a batch's keys: in a cluster, all keys of a group are on one server, and groups
//! may be on different ones.

use catraca_core::batch::Batch;
use catraca_core::digest::Key;

use crate::store::{BatchPart, first_key, split_by};

/// The group of a batch: that of its first key, which all other keys share.
pub(super) fn batch_group(batch: &Batch) -> u16 {
    first_key(batch).map_or(0, Key::group)
}

/// The batches per group, or nothing if the batch has keys of one group or must not be split.
pub(super) fn split_by_group(batch: &Batch) -> Option<Vec<BatchPart>> {
    split_by(batch, Key::group)
}
