//! Section 4: blocks, escalation, and blocks that only shadow rows see.
//!
//! It must not know why somebody acts; origin and length come with the act.

use super::catalog::Length;
use super::{FOREVER, Micros};

/// Who started a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The policy's own limit was passed.
    Excess,
    /// A ban rule or the watch.
    Ban,
    /// An operator.
    Operator,
    /// The upstream said when to come back.
    Upstream,
}

/// A block of one (policy, key); once over it only remembers the level.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// First instant without it.
    pub until: Micros,
    /// Who started it.
    pub origin: Origin,
    /// Recorded reason.
    pub reason: String,
    /// Number of the last offence that escalated, from 0.
    pub level: Option<u32>,
    /// How long after the end the level is remembered.
    pub forget: Micros,
    /// Whether only shadow rows see it.
    pub shadow: bool,
}

/// Somebody wants a block.
#[derive(Clone, Debug)]
pub struct Act<'a> {
    /// Who.
    pub origin: Origin,
    /// Why.
    pub reason: &'a str,
    /// For how long.
    pub length: &'a Length,
    /// Whether a shadow row wants it.
    pub shadow: bool,
}

/// The block that stands for a row of this mode. Enforcing rows do not see shadow blocks.
pub fn standing(block: &Option<Block>, shadow: bool, now: Micros) -> Option<&Block> {
    block.as_ref().filter(|block| now < block.until && (shadow || !block.shadow))
}

/// Applies one act; says whether it changed the end of the block.
pub fn act(slot: &mut Option<Block>, act: &Act, now: Micros) -> bool {
    if slot.as_ref().is_some_and(|block| block.shadow && !act.shadow) {
        // What only shadow rows saw is replaced, its level included.
        *slot = None;
    }
    let stands = standing(slot, true, now).cloned();
    if let Some(block) = &stands {
        let settled_matter = act.origin == Origin::Excess && block.origin == Origin::Excess;
        let untouchable = act.shadow && !block.shadow;
        if settled_matter || untouchable {
            return false;
        }
    }
    let (level, forget) = match slot {
        Some(block) if now < block.until.saturating_add(block.forget) => {
            (block.level, block.forget)
        }
        _ => (None, 0),
    };
    let proposal = propose(act, level, forget, now);
    let changed = stands.as_ref().is_none_or(|block| block.until < proposal.until);
    *slot = Some(match stands {
        // An earlier or equal end changes nothing but the level.
        Some(block) if !changed => {
            Block { level: proposal.level, forget: proposal.forget, ..block }
        }
        _ => proposal,
    });
    changed
}

/// Ends the block now and keeps the level; says whether a block stood.
pub fn release(slot: &mut Option<Block>, now: Micros) -> bool {
    match slot {
        Some(block) if now < block.until => {
            block.until = now;
            true
        }
        _ => false,
    }
}

/// The block this act asks for, as if none stood.
fn propose(act: &Act, level: Option<u32>, forget: Micros, now: Micros) -> Block {
    let (length, level, forget) = match *act.length {
        Length::Fixed(length) => (length, level, forget),
        Length::Escalating { first, factor, max, forget } => {
            let next = level.map_or(0, |level| level + 1);
            (escalated(first, factor, max, next), Some(next), forget)
        }
    };
    let until = if length == FOREVER { FOREVER } else { now + length };
    let reason = act.reason.to_owned();
    Block { until, origin: act.origin, reason, level, forget, shadow: act.shadow }
}

/// `min(first * factor^level, max)`.
fn escalated(first: Micros, factor: i64, max: Micros, level: u32) -> Micros {
    let mut length = first;
    for _ in 0..level {
        if length >= max {
            break;
        }
        length = length.saturating_mul(factor);
    }
    length.min(max)
}
