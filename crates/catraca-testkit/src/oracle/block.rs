//! Section 4: blocks, their escalation, and shadow blocks.

use super::catalog::Length;
use super::{FOREVER, Micros};

/// What started a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The policy's own limit was exceeded.
    Excess,
    /// A ban rule or the watch.
    Ban,
    /// An operator.
    Operator,
    /// The `Retry-After` of an upstream.
    Upstream,
}

/// A block of one (policy, key). After its end only the level is still used.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The end: the first instant that is not blocked.
    pub until: Micros,
    /// What started it.
    pub origin: Origin,
    /// The recorded reason.
    pub reason: String,
    /// The number of the last offence that escalated, from 0.
    pub level: Option<u32>,
    /// How long after the end the level is remembered.
    pub forget: Micros,
    /// Whether it applies to shadow rows only.
    pub shadow: bool,
}

/// A request to start a block.
#[derive(Clone, Debug)]
pub struct BlockAct<'a> {
    /// What starts it.
    pub origin: Origin,
    /// The reason to record.
    pub reason: &'a str,
    /// The length.
    pub length: &'a Length,
    /// Whether a shadow row starts it.
    pub shadow: bool,
}

/// The active block of a row. Shadow blocks apply to shadow rows only.
pub fn active_block(block: &Option<Block>, shadow: bool, now: Micros) -> Option<&Block> {
    block.as_ref().filter(|block| now < block.until && (shadow || !block.shadow))
}

/// Starts or extends a block; returns whether its end changed.
pub fn act(slot: &mut Option<Block>, act: &BlockAct, now: Micros) -> bool {
    if slot.as_ref().is_some_and(|block| block.shadow && !act.shadow) {
        // A real block replaces a shadow block, its level included.
        *slot = None;
    }
    let active = active_block(slot, true, now).cloned();
    if let Some(block) = &active {
        // Further excess during a block by excess neither extends nor escalates it.
        if act.origin == Origin::Excess && block.origin == Origin::Excess {
            return false;
        }
    }
    let remembered = slot.as_ref().filter(|block| now < block.until.saturating_add(block.forget));
    if act.shadow && remembered.is_some_and(|block| !block.shadow) {
        // A shadow act neither raises nor replaces a real level that is remembered.
        return false;
    }
    let (level, forget) = remembered.map_or((None, 0), |block| (block.level, block.forget));
    let proposal = propose(act, level, forget, now);
    let changed = active.as_ref().is_none_or(|block| block.until < proposal.until);
    *slot = Some(match active {
        // An earlier or equal end changes nothing but the level.
        Some(block) if !changed => {
            Block { level: proposal.level, forget: proposal.forget, ..block }
        }
        _ => proposal,
    });
    changed
}

/// Ends the active block now and keeps its level; returns whether there was one.
pub fn release(slot: &mut Option<Block>, now: Micros) -> bool {
    match slot {
        Some(block) if now < block.until => {
            block.until = now;
            true
        }
        _ => false,
    }
}

/// The block that an act starts if none is active.
fn propose(act: &BlockAct, level: Option<u32>, forget: Micros, now: Micros) -> Block {
    let (length, level, forget) = match *act.length {
        Length::Fixed(length) => (length, level, forget),
        Length::Escalating { first, factor, max, forget } => {
            let next = level.map_or(0, |level| level + 1);
            (escalated_length(first, factor, max, next), Some(next), forget)
        }
    };
    let until = if length == FOREVER { FOREVER } else { now + length };
    let reason = act.reason.to_owned();
    Block { until, origin: act.origin, reason, level, forget, shadow: act.shadow }
}

/// `min(first * factor^level, max)`.
fn escalated_length(first: Micros, factor: i64, max: Micros, level: u32) -> Micros {
    let mut length = first;
    for _ in 0..level {
        if length >= max {
            break;
        }
        length = length.saturating_mul(factor);
    }
    length.min(max)
}
