//! What nodes publish for each other in a shared store: that they are alive, the notices of blocks
//! and releases, and, without shared records, the rules that operators made.
//!
//! The store does not read any of it: bodies are bytes.

/// The number of notices in the reply to one exchange.
pub const NOTICES_PER_REPLY: usize = 1_000;

/// What a node publishes with a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct NodeMessage<'a> {
    /// The id of the node, without spaces.
    pub node: &'a str,
    /// What the others must know about it, on one line.
    pub state: &'a str,
    /// Nodes that are gone.
    pub gone: &'a [String],
    /// The version of the last notice that this node has read; empty for none.
    pub after: &'a str,
    /// New notices, in order.
    pub notices: &'a [Vec<u8>],
}

/// What the other nodes have published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReply {
    /// The notices after the given version, oldest first, at most [`NOTICES_PER_REPLY`], each with
    /// its version. Those of this message are among them.
    pub notices: Vec<(String, Vec<u8>)>,
    /// How many notices the store has.
    pub stored: u64,
    /// Every node with its state.
    pub nodes: Vec<(String, String)>,
}

/// One rule that nodes share through the store, as the newest act about it left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StampedRule {
    /// The digest that names the rule.
    pub name: Vec<u8>,
    /// When it was written or removed.
    pub stamp: RuleStamp,
    /// The rule; absent if it was removed.
    pub body: Option<Vec<u8>>,
}

/// Orders the acts about one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleStamp {
    /// The instant of the act by the store's clock, in microseconds; at most 2^53.
    pub micros: u64,
    /// Random, for two acts at the same instant.
    pub tie_breaker: u32,
}

/// How rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleWriteMode {
    /// Replaces a rule whose stamp is lower; counts as a change.
    Merge,
    /// Deletes what is left of a removed rule, if the store still has it with this stamp; counts as
    /// no change.
    Purge,
}

/// A page of the rules that nodes share through the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulePage {
    /// Rules, and what is left of removed ones. A rule may be on two pages.
    pub rules: Vec<StampedRule>,
    /// Where the next page begins; absent after the last one.
    pub next: Option<u64>,
}
