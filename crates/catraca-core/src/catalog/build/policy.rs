//! One policy.

use std::time::Duration;

use super::consequence::{BanBuilder, WatchBuilder};
use super::shared_fields::TierBuilder;
use super::table::{Table, keyword, rate, texts};
use crate::catalog::read::{MODES, ON_FAILURE, ON_MISSING};
use crate::policy::{Mode, OnFailure, OnMissing};
use crate::rate::Percent;

/// Who is counted, how much, and what happens then: a `[policy.NAME]` of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyBuilder {
    pub(super) name: String,
    pub(super) table: Table,
}

impl PolicyBuilder {
    /// A policy of this name; every policy is also a gate of its own name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), table: Table::default() }
    }

    /// A label for operators.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.table.set("group", group);
        self
    }

    /// The attributes that form the key. `"token|ip"` uses the first that is present; an empty list
    /// counts all callers together.
    #[must_use]
    pub fn by<T: Into<String>>(mut self, attributes: impl IntoIterator<Item = T>) -> Self {
        self.table.set("by", texts(attributes));
        self
    }

    /// One key for each of these attributes that is present.
    #[must_use]
    pub fn each<T: Into<String>>(mut self, attributes: impl IntoIterator<Item = T>) -> Self {
        self.table.set("each", texts(attributes));
        self
    }

    /// What happens if a key attribute is missing.
    #[must_use]
    pub fn on_missing(mut self, on_missing: OnMissing) -> Self {
        self.table.set("on_missing", keyword(&ON_MISSING, &on_missing));
        self
    }

    /// The policy used instead if a key attribute is missing or no tier matches.
    #[must_use]
    pub fn otherwise(mut self, policy: &str) -> Self {
        self.table.set("otherwise", policy);
        self
    }

    /// Other terms for some callers; the first tier that matches applies.
    #[must_use]
    pub fn tier(mut self, tier: TierBuilder) -> Self {
        self.table.push("tier", tier.table);
        self
    }

    /// A `fixed` window starts at multiples of its span on the clock.
    #[must_use]
    pub fn align_to_clock(mut self) -> Self {
        self.table.set("align", "clock");
        self
    }

    /// Scales the size of a bucket, to stay below an upstream's limit.
    #[must_use]
    pub fn margin(mut self, share: Percent) -> Self {
        self.table.set("margin", share.to_string());
        self
    }

    /// Requests that this policy's limit denies count too.
    #[must_use]
    pub fn count_denied(mut self) -> Self {
        self.table.set("count_denied", true);
        self
    }

    /// Reports an event when less than this share of the limit remains.
    #[must_use]
    pub fn low_water(mut self, share: Percent) -> Self {
        self.table.set("low_water", share.to_string());
        self
    }

    /// The units held at check if the cost is known only at settle.
    #[must_use]
    pub fn reserve(mut self, units: i64) -> Self {
        self.table.set("reserve", units);
        self
    }

    /// The balance may become negative.
    #[must_use]
    pub fn debt(mut self) -> Self {
        self.table.set("debt", true);
        self
    }

    /// How long an admitted check can be settled.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.table.set("hold", hold);
        self
    }

    /// How long the reference of a check is stored.
    #[must_use]
    pub fn remember(mut self, remember: Duration) -> Self {
        self.table.set("remember", remember);
        self
    }

    /// Adds a rule that starts a block because of an outcome.
    #[must_use]
    pub fn ban(mut self, ban: BanBuilder) -> Self {
        self.table.push("ban", ban.table);
        self
    }

    /// After so many settles that ban within the span, the rules run in shadow mode for a while.
    #[must_use]
    pub fn ban_storm(mut self, bans: i64, per: Duration) -> Self {
        self.table.set("ban_storm", rate(bans, per.into()));
        self
    }

    /// Bans a key with a high share of some outcomes.
    #[must_use]
    pub fn watch(mut self, watch: WatchBuilder) -> Self {
        self.table.set("watch", watch.table);
        self
    }

    /// A text for the denied caller; `{retry_after}` becomes a duration in words.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.table.set("message", message);
        self
    }

    /// Whether the policy is enforced, only reported, or off.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.table.set("mode", keyword(&MODES, &mode));
        self
    }

    /// What happens when the store fails or memory is full.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.table.set("on_failure", keyword(&ON_FAILURE, &on_failure));
        self
    }
}
