//! Blocks, bans and watched ratios.

use std::time::Duration;

use super::table::{Table, Value, rate, texts};
use crate::rate::Percent;

/// How long a block lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLength(pub(super) Value);

/// Blocks that become longer: the first lasts `first`, and each further one `factor` times the
/// previous one, up to `max`. A key without a block for `forget` starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// The first block.
    pub first: Duration,
    /// How many times longer each further block is.
    pub factor: i64,
    /// The longest block.
    pub max: Duration,
    /// How long after a block it still counts.
    pub forget: Duration,
}

/// A rule that starts a block because of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanBuilder {
    pub(super) table: Table,
}

/// A rule that bans a key with a high share of some outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchBuilder {
    pub(super) table: Table,
}

impl From<Duration> for BlockLength {
    fn from(duration: Duration) -> Self {
        Self(duration.into())
    }
}

impl From<Escalation> for BlockLength {
    fn from(escalation: Escalation) -> Self {
        let mut table = Table::default();
        table.set("first", escalation.first);
        table.set("factor", escalation.factor);
        table.set("max", escalation.max);
        table.set("forget", escalation.forget);
        Self(table.into())
    }
}

impl BanBuilder {
    /// Blocks the key when an outcome meets a condition in CEL, such as `status == 403`.
    pub fn when(condition: &str, length: impl Into<BlockLength>) -> Self {
        let mut table = Table::default();
        table.set("when", condition);
        table.set("for", length.into().0);
        Self { table }
    }

    /// A text for operators.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.table.set("reason", reason);
        self
    }

    /// So many matching outcomes within a span start the block, not the first one.
    #[must_use]
    pub fn after(mut self, outcomes: i64, per: Duration) -> Self {
        self.table.set("after", rate(outcomes, per.into()));
        self
    }

    /// The HTTP status of denials while the block is active.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.table.set("status", i64::from(status));
        self
    }

    /// A text for the caller while the block is active.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.table.set("message", message);
        self
    }

    /// The HTTP status of the response to the request that starts the block.
    #[must_use]
    pub fn answer_status(mut self, status: u16) -> Self {
        self.table.set("answer_status", i64::from(status));
        self
    }

    /// A text for the caller of the request that starts the block.
    #[must_use]
    pub fn answer_message(mut self, message: &str) -> Self {
        self.table.set("answer_message", message);
        self
    }
}

impl WatchBuilder {
    /// Counts the outcomes with a status in `share` among those with a status in `of`.
    pub fn share<T: Into<String>, U: Into<String>>(
        share: impl IntoIterator<Item = T>,
        of: impl IntoIterator<Item = U>,
    ) -> Self {
        let mut table = Table::default();
        table.set("share", texts(share));
        table.set("of", texts(of));
        Self { table }
    }

    /// Bans a key with more than this share, once it has at least `min` outcomes in `per`.
    #[must_use]
    pub fn ban_above(
        mut self,
        share: Percent,
        min: i64,
        per: Duration,
        length: impl Into<BlockLength>,
    ) -> Self {
        self.table.set("above", share.to_string());
        self.table.set("min", min);
        self.table.set("per", per);
        self.table.set("ban", length.into().0);
        self
    }
}
