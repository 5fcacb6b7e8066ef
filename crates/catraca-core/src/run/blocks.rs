//! Blocks as acts on a key: start, lengthen, release, forget.
//!
//! Must not shorten a block except by release.

use crate::batch::{BlockRow, Past, Standing};
use crate::cell::block::Act;
use crate::cell::{Block, Bucket, Cells, Fixed, Leases, Log, Pool, Watch};
use crate::digest::Key;
use crate::time::{Span, Time};

/// Ban rules have their strikes in cells of their own beside the key: one per rule, at most this
/// many.
pub const RULES_MAX: u8 = 16;

/// The key of a ban rule's strikes.
pub fn strikes_key(key: Key, rule: u8) -> Key {
    key.with_kind(rule + 1)
}

/// The block that stands on a key, as a row of this mode sees it.
#[inline]
pub fn standing<C: Pool<Block>>(
    key: Key,
    shadow: bool,
    cells: &mut C,
    now: Time,
) -> Option<&Block> {
    cells.get(key, now).map(|block| &*block).filter(|block| block.stands(now, shadow))
}

/// Proposes a block; says whether an end moved. A pool without room starts nothing.
pub fn act<C: Pool<Block>>(key: Key, act: &Act, cells: &mut C, now: Time) -> bool {
    let known: Option<&mut Block> = cells.get(key, now);
    let before = known.as_ref().map(|block| (block.until, block.shadow));
    let next = match known {
        Some(block) => block.after(act, now),
        None => Some(Block::started(act, now)),
    };
    let moved = next.as_ref().map(|block| (block.until, block.shadow)) != before;
    next.is_some_and(|block| cells.put(key, block, now) && moved)
}

/// Blocks keys, as an operator does.
pub fn block<C: Cells>(rows: &[BlockRow], cells: &mut C, now: Time) -> Vec<Standing> {
    rows.iter().map(|row| block_one(row, cells, now)).collect()
}

fn block_one<C: Cells>(row: &BlockRow, cells: &mut C, now: Time) -> Standing {
    let past = row.past.filter(|past| past.level > 0);
    let is_over = past.is_some() && row.act.penalty.length(0) == Span::ZERO;
    let changed = !is_over && act(row.key, &row.act, cells, now);
    past.into_iter().for_each(|past| remember(row, past, cells, now));
    let after = standing(row.key, true, cells, now);
    Standing {
        until: after.map_or(now, |block| block.until),
        origin: after.map_or(row.act.origin, |block| block.origin),
        note: after.map(|block| block.note.clone()).unwrap_or_default(),
        changed,
    }
}

/// Brings offences back that were counted before; what the store knows beyond them stays.
fn remember<C: Pool<Block>>(row: &BlockRow, past: Past, cells: &mut C, now: Time) {
    let known: Option<&mut Block> = cells.get(row.key, now);
    let known = known.map(|block| block.clone());
    let block = known.unwrap_or_else(|| Block::started(&row.act, now));
    if block.shadow == row.act.shadow && block.level <= past.level {
        cells.put(row.key, block.remembering(past, now), now);
    }
}

/// Ends blocks; says which keys were blocked.
pub fn unblock<C: Cells>(keys: &[Key], cells: &mut C, now: Time) -> Vec<bool> {
    keys.iter().map(|key| unblock_one(*key, cells, now)).collect()
}

fn unblock_one<C: Pool<Block>>(key: Key, cells: &mut C, now: Time) -> bool {
    let Some(block) = standing(key, true, cells, now).cloned() else { return false };
    cells.put(key, block.released(now), now);
    true
}

/// Forgets everything about keys.
pub fn reset<C: Cells>(keys: &[Key], cells: &mut C, now: Time) {
    for key in keys {
        Pool::<Bucket>::remove(cells, *key, now);
        Pool::<Log>::remove(cells, *key, now);
        Pool::<Fixed>::remove(cells, *key, now);
        Pool::<Leases>::remove(cells, *key, now);
        Pool::<Block>::remove(cells, *key, now);
        Pool::<Watch>::remove(cells, *key, now);
        for rule in 0..RULES_MAX {
            Pool::<Log>::remove(cells, strikes_key(*key, rule), now);
        }
    }
}
