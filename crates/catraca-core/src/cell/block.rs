//! Block: the denial of one (policy, key) until an instant, and the level of repeated offences.
//!
//! Only a release moves the end earlier. The rules here do not depend on the reason of a block.

use std::sync::Arc;
use std::time::Duration;

use super::{Cell, allocation_bytes};
use crate::limit::Penalty;
use crate::time::{Span, Time};

/// What started a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The policy's own limit was exceeded.
    Excess,
    /// A ban rule or a watched ratio of the policy.
    Ban,
    /// An operator.
    Operator,
    /// The upstream's `Retry-After`.
    Upstream,
}

/// The block of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The end: the first instant that is not blocked.
    pub until: Time,
    /// What started the block.
    pub origin: Origin,
    /// Whether it is a shadow block, which enforcing rows ignore.
    pub shadow: bool,
    /// The escalation level: how many escalating offences are remembered.
    pub level: u32,
    /// How long the level is remembered after the end.
    pub forget: Span,
    /// Reason, status and message.
    pub note: BlockNote,
}

/// What a block says to operators and callers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BlockNote {
    /// The reason, for operators.
    pub reason: Option<Arc<str>>,
    /// The HTTP status that a gateway responds with.
    pub status: Option<u16>,
    /// The message for the caller.
    pub message: Option<Arc<str>>,
}

/// A proposal to block a key: from an excess, a ban, an operator or an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockProposal {
    /// The length, and how it escalates.
    pub penalty: Penalty,
    /// What the proposal is caused by.
    pub origin: Origin,
    /// Whether it proposes a shadow block.
    pub shadow: bool,
    /// Reason, status and message.
    pub note: BlockNote,
    /// Prior offences; only for a block that the records restore.
    pub prior_offences: Option<PriorOffences>,
}

/// The escalation level that a key had reached, as the records know it. With a proposal of length
/// zero, only the level is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorOffences {
    /// The level; a higher one in the store stays.
    pub level: u32,
    /// How long the level is remembered after the end of the block.
    pub forget: Span,
    /// How long ago the block ended; zero for one that is active.
    pub since_end: Span,
}

impl BlockProposal {
    /// A proposal without prior offences.
    pub const fn new(penalty: Penalty, origin: Origin, shadow: bool, note: BlockNote) -> Self {
        Self { penalty, origin, shadow, note, prior_offences: None }
    }

    /// An operator's block; [`Duration::MAX`] for one without an end.
    pub fn by_operator(length: impl Into<Duration>, reason: Option<&str>) -> Self {
        let note = BlockNote { reason: reason.map(Into::into), ..BlockNote::default() };
        Self::new(Penalty::without_escalation(length.into().into()), Origin::Operator, false, note)
    }

    /// Proposes a known block and its level again, for the time that is left at `now`, so that its
    /// end does not move.
    #[doc(hidden)]
    pub fn restore(block: Block, now: Time) -> Self {
        let since_end = now.since(block.until);
        let prior = PriorOffences { level: block.level, forget: block.forget, since_end };
        Self {
            penalty: Penalty::without_escalation(block.until.since(now)),
            origin: block.origin,
            shadow: block.shadow,
            note: block.note,
            prior_offences: (prior.level > 0).then_some(prior),
        }
    }
}

impl Cell for Block {
    const IS_INLINE: bool = false;

    #[inline]
    fn expires_at(&self) -> Time {
        self.until.after(self.forget)
    }

    /// Texts count in full for every block, although blocks of the same rule share them.
    fn weight(&self) -> usize {
        let texts = [&self.note.reason, &self.note.message].into_iter().flatten();
        // An `Arc<str>` allocates two reference counts and the text.
        let counts = 2 * size_of::<usize>();
        texts.map(|text| allocation_bytes(text.len() + counts)).sum()
    }
}

impl Block {
    /// The block that a proposal starts on a key without one. It has the length of level 0; the
    /// stored level is that of the next offence.
    pub fn from_proposal(proposal: &BlockProposal, now: Time) -> Self {
        Self {
            until: now.after(proposal.penalty.length(0)),
            origin: proposal.origin,
            shadow: proposal.shadow,
            level: u32::from(proposal.penalty.escalates()),
            forget: proposal.penalty.forget,
            note: proposal.note.clone(),
        }
    }

    /// Whether the block is active for a row that enforces, or for a shadow row.
    #[inline]
    pub fn is_active(&self, now: Time, shadow: bool) -> bool {
        now < self.until && (shadow || !self.shadow)
    }

    /// The block after a proposal; `None` if the proposal changes nothing.
    pub fn apply(&self, proposal: &BlockProposal, now: Time) -> Option<Self> {
        // A shadow policy changes nothing while a real block is active or its level is remembered:
        // a cell has one level, and the real one must be neither raised nor lost.
        if proposal.shadow && !self.shadow && now < self.expires_at() {
            return None;
        }
        // A block of the other mode is replaced, level included.
        if self.shadow != proposal.shadow {
            return Some(Self::from_proposal(proposal, now));
        }
        // Denied attempts do not extend the block of an earlier excess.
        if proposal.origin == Origin::Excess && self.origin == Origin::Excess && now < self.until {
            return None;
        }
        Some(self.merge(proposal, now))
    }

    /// Merges a proposal into the block. The later end wins, and brings its origin and note. Only
    /// an escalating proposal changes the level.
    fn merge(&self, proposal: &BlockProposal, now: Time) -> Self {
        let level = if now < self.expires_at() { self.level } else { 0 };
        let until = now.after(proposal.penalty.length(level));
        let mut next = self.clone();
        // Counts for the level even if the active block ends later.
        if proposal.penalty.escalates() {
            next.level = level.saturating_add(1);
            next.forget = proposal.penalty.forget;
        }
        if until > self.until {
            next = Self {
                until,
                origin: proposal.origin,
                shadow: proposal.shadow,
                note: proposal.note.clone(),
                ..next
            };
        }
        next
    }

    /// The block with the level of prior offences. If it has ended, the later end counts: its own,
    /// or that of the prior offences.
    pub fn with_prior_offences(mut self, prior: PriorOffences, now: Time) -> Self {
        if self.until <= now {
            self.until = self.until.max(now.before(prior.since_end));
        }
        self.level = prior.level;
        self.forget = prior.forget;
        self
    }

    /// The block, ended at `now` by an operator. The level remains.
    pub fn release(mut self, now: Time) -> Self {
        self.until = self.until.min(now);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESCALATING: Penalty = Penalty {
        first: Span::from_secs(10),
        factor: 2,
        max: Span::from_secs(100),
        forget: Span::from_secs(60),
    };

    fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn proposal(shadow: bool) -> BlockProposal {
        BlockProposal::new(ESCALATING, Origin::Ban, shadow, BlockNote::default())
    }

    #[test]
    fn the_texts_of_a_block_count_for_the_memory() {
        let weight = |reason: Option<&str>| {
            let proposal = BlockProposal::by_operator(Span::from_secs(5), reason);
            Block::from_proposal(&proposal, at(0)).weight()
        };
        assert_eq!(weight(None), 0);
        assert!(weight(Some("a reason of some length")) >= 23 + 2 * size_of::<usize>());
    }

    #[test]
    fn an_operators_block_is_real_and_has_its_reason() {
        let block = BlockProposal::by_operator(Span::from_secs(5), Some("fraud"));
        assert_eq!((block.origin, block.shadow), (Origin::Operator, false));
        assert_eq!(block.note.reason.as_deref(), Some("fraud"));
    }

    #[test]
    fn levels_of_shadow_and_real_blocks_never_mix() {
        let real = Block::from_proposal(&proposal(false), at(0));
        // The block ends at 10 s, and its level is remembered until 70 s.
        for second in [9, 10, 69] {
            assert_eq!(real.apply(&proposal(true), at(second)), None, "{second}");
        }
        assert_eq!(real.apply(&proposal(false), at(69)).unwrap().level, 2);
        let shadow = real.apply(&proposal(true), at(70)).unwrap();
        assert!(shadow.shadow && !shadow.is_active(at(71), false));
        assert_eq!((shadow.until, shadow.level), (at(80), 1));
        let again = shadow.apply(&proposal(true), at(80)).unwrap();
        assert_eq!((again.until, again.level), (at(100), 2));
        let real = again.apply(&proposal(false), at(90)).unwrap();
        assert_eq!((real.shadow, real.until, real.level), (false, at(100), 1));
    }

    #[test]
    fn a_block_is_restored_with_its_level_and_without_one_only_if_it_has_none() {
        let block = Block::from_proposal(&proposal(false), at(0));
        let active = BlockProposal::restore(block.clone(), at(4));
        assert_eq!(active.penalty, Penalty::without_escalation(Span::from_secs(6)));
        let prior = |seconds| PriorOffences {
            level: 1,
            forget: ESCALATING.forget,
            since_end: Span::from_secs(seconds),
        };
        assert_eq!(active.prior_offences, Some(prior(0)));
        let ended = BlockProposal::restore(block.clone(), at(13));
        assert_eq!(ended.penalty.first, Span::ZERO);
        assert_eq!(ended.prior_offences, Some(prior(3)));
        let without = BlockProposal::restore(Block { level: 0, ..block }, at(4));
        assert_eq!(without.prior_offences, None);
    }
}
