//! A block: the timed denial of one (policy, key), and the level of repeated offences.
//!
//! An end never moves earlier except by release. Must not know why: origin and reason are carried,
//! not judged.

use std::sync::Arc;

use super::Cell;
use crate::batch::Past;
use crate::limit::Penalty;
use crate::museum::{Bug, planted};
use crate::time::{Span, Time};

/// What started a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The policy's own limit was exceeded.
    Excess,
    /// A ban rule or a watched ratio.
    Ban,
    /// A person.
    Operator,
    /// The upstream asked for it.
    Upstream,
}

/// The block of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first instant that is free again.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// Whether only shadow rows see it.
    pub shadow: bool,
    /// How many escalating acts are remembered.
    pub level: u32,
    /// How long after the end the level is remembered.
    pub forget: Span,
    /// What operators and callers are told.
    pub note: Note,
}

/// What operators and callers are told of a block.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Note {
    /// Why, for operators.
    pub reason: Option<Arc<str>>,
    /// The status a gateway answers.
    pub status: Option<u16>,
    /// Text for the caller.
    pub message: Option<Arc<str>>,
}

/// A proposal to block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// How long.
    pub penalty: Penalty,
    /// What started it.
    pub origin: Origin,
    /// Whether only shadow rows may see it.
    pub shadow: bool,
    /// What is told.
    pub note: Note,
}

impl Cell for Block {
    #[inline]
    fn forgotten_at(&self) -> Time {
        self.until.after(self.forget)
    }
}

impl Block {
    /// The block that an act starts where none is known.
    pub fn started(act: &Act, now: Time) -> Self {
        Self {
            until: now.after(act.penalty.length(0)),
            origin: act.origin,
            shadow: act.shadow,
            level: u32::from(act.penalty.escalates()),
            forget: act.penalty.forget,
            note: act.note.clone(),
        }
    }

    /// Whether it stands, for a row of this mode.
    #[inline]
    pub fn stands(&self, now: Time, shadow: bool) -> bool {
        let open = now < self.until || (planted(Bug::BlockEdgeInclusive) && now == self.until);
        open && (shadow || !self.shadow)
    }

    /// What is left after an act; `None` when the act changes nothing.
    pub fn after(&self, act: &Act, now: Time) -> Option<Self> {
        if act.shadow && !self.shadow && now < self.until {
            return None;
        }
        if self.shadow && !act.shadow {
            return Some(Self::started(act, now));
        }
        if act.origin == Origin::Excess && self.origin == Origin::Excess && now < self.until {
            return None;
        }
        Some(self.merged(act, now))
    }

    /// The later end wins and brings its origin and note; only an escalating act moves the level.
    fn merged(&self, act: &Act, now: Time) -> Self {
        let level = if now < self.forgotten_at() { self.level } else { 0 };
        let until = now.after(act.penalty.length(level));
        let mut next = self.clone();
        if act.penalty.escalates() {
            next.level = level.saturating_add(1);
            next.forget = act.penalty.forget;
        }
        if until > self.until || planted(Bug::BlockShortens) {
            next = Self {
                until,
                origin: act.origin,
                shadow: act.shadow,
                note: act.note.clone(),
                ..next
            };
        }
        next
    }

    /// The block with the offences of before. What is over ends now, so that they are remembered
    /// exactly as long as they are told to be.
    pub fn remembering(mut self, past: Past, now: Time) -> Self {
        if self.until <= now {
            self.until = now;
        }
        (self.level, self.forget) = (past.level, past.forget);
        self
    }

    /// The block ended by an operator; the level stays.
    pub fn released(mut self, now: Time) -> Self {
        self.until = self.until.min(now);
        self
    }
}
