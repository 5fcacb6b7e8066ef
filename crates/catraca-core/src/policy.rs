//! Policies: the key by which callers are counted, the limit, and the bans. Plain, validated data.
//!
//! Only `catalog::read` builds these values, so they are already consistent.

use std::fmt;
use std::sync::Arc;

use crate::condition::Condition;
use crate::limit::{Limit, Penalty};
use crate::price::{Cost, CostField, CostWeights, StatusSet};
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// A name, shared instead of copied.
pub type Name = Arc<str>;

/// A policy's index in `Catalog::policies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId(pub u16);

/// One policy of the catalog.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name, unique in the catalog; every policy is also a gate of its own name.
    pub name: Name,
    /// A hash of the name, by which a store recognises all keys of this policy.
    pub family: u64,
    /// A label for reports.
    pub group: Option<Name>,
    /// The attributes that form the key by which callers are counted.
    pub key_spec: KeySpec,
    /// The terms of callers that match no tier; absent when only the tiers have limits.
    pub base: Option<Terms>,
    /// Different terms for some callers; the first tier that matches wins.
    pub tiers: Vec<Tier>,
    /// The policy used when a key attribute is missing or no tier matches.
    pub otherwise: Option<PolicyId>,
    /// What happens when the key is incomplete and there is no `otherwise` policy.
    pub on_missing: OnMissing,
    /// Whether the policy is enforced, only reported, or off.
    pub mode: Mode,
    /// What happens when the store fails.
    pub on_failure: OnFailure,
    /// Whether a settled price may make the remaining units negative.
    pub debt: bool,
    /// Whether denials by this policy's own limit are counted too.
    pub count_denied: bool,
    /// Units reserved at check when the price is known only at settle.
    pub reserve: i64,
    /// How long a ticket can be settled, and when an in-flight lease expires.
    pub hold: Span,
    /// How long a check can be found by its reference.
    pub remember: Span,
    /// The text shown to a denied caller.
    pub message: Option<Name>,
    /// The remaining share of the limit below which a warning event is emitted.
    pub low_water: Option<Percent>,
    /// Rules that ban on an outcome.
    pub bans: Vec<BanRule>,
    /// A ban on a high ratio of some outcomes.
    pub watch: Option<WatchRule>,
    /// Above this rate of new bans the ban rules are switched to shadow for a while.
    pub ban_storm: Option<Rate>,
}

/// What a tier may change. The algorithm itself is the same in all terms of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The algorithm and its numbers.
    pub limit: Limit,
    /// The refill of a bucket as the catalog writes it; `limit` has it in lowest terms.
    pub refill: Option<Rate>,
    /// The block that starts when the limit is exceeded.
    pub block: Option<Penalty>,
    /// The price of a request.
    pub cost: Cost,
    /// Events after settle that give units back.
    pub credits: Vec<CreditRule>,
}

impl Terms {
    /// The limit as text, with the refill of a bucket as the catalog writes it.
    pub fn describe_limit(&self) -> String {
        match (&self.limit, self.refill) {
            (Limit::Bucket(bucket), Some(refill)) => {
                format!("bucket of {}, refill {refill}", bucket.size)
            }
            (limit, _) => limit.describe(),
        }
    }
}

/// The terms of the callers that match `when`.
#[derive(Clone, Debug)]
pub struct Tier {
    /// Attributes with their accepted values; all attributes must match.
    pub when: Vec<(Name, Vec<Name>)>,
    /// The terms; parts that the tier leaves out were filled in from the policy.
    pub terms: Terms,
    /// The tier's id in tickets: a hash of `when`, so that it survives a reordering of tiers.
    pub id: u32,
}

/// The attributes that form a policy's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySpec {
    /// One key of several parts; an empty list is one counter for all callers.
    By(Vec<KeyPart>),
    /// One key for each of these attributes that is present.
    Each(Vec<Name>),
}

/// One part of a key: the first of these attributes that is present.
pub type KeyPart = Vec<Name>;

/// A credit: an event after settle that gives units back to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditRule {
    /// The event's name.
    pub event: Name,
    /// Units given back.
    pub amount: i64,
    /// The settled statuses that are credited; absent means any.
    pub on: Option<StatusSet>,
}

/// A rule that bans on an outcome.
#[derive(Clone, Debug)]
pub struct BanRule {
    /// The condition.
    pub when: Condition,
    /// The length of the ban, and how repeated bans lengthen it.
    pub penalty: Penalty,
    /// The reason shown to operators.
    pub reason: Name,
    /// The rate of matching outcomes that starts the ban; absent means the first one does.
    pub after: Option<Rate>,
    /// The status that a gateway returns to requests while the ban is in force.
    pub status: Option<u16>,
    /// The text shown to a banned caller.
    pub message: Option<Name>,
    /// The status for the request that starts the ban, if it is another one than `status`.
    pub answer_status: Option<u16>,
    /// The text for the request that starts the ban, if it is another one than `message`.
    pub answer_message: Option<Name>,
}

impl BanRule {
    /// The status for the request that starts the ban; with one, a ban replaces the response.
    pub fn status_of_answer(&self) -> Option<u16> {
        self.answer_status.or(self.status)
    }

    /// The text for the request that starts the ban.
    pub fn message_of_answer(&self) -> Option<&Name> {
        self.answer_message.as_ref().or(self.message.as_ref())
    }
}

/// A rule that bans when the ratio of two counts of outcomes is too high.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRule {
    /// The statuses that count in the numerator.
    pub share: StatusSet,
    /// The statuses that count in the denominator.
    pub of: StatusSet,
    /// The ratio that must be exceeded.
    pub above: Percent,
    /// The smallest denominator for which the ratio is evaluated.
    pub min: i64,
    /// The length of the sliding period, counted in 24 slices.
    pub per: Span,
    /// The ban.
    pub ban: Penalty,
}

/// Whether a policy is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// The policy can deny requests.
    #[default]
    Enforce,
    /// The policy is evaluated and reported, but never denies.
    Shadow,
    /// The policy is not evaluated.
    Off,
}

/// What a policy does when a key attribute is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// The call is refused as malformed.
    #[default]
    Error,
    /// The policy does not apply.
    Skip,
    /// The policy denies.
    Deny,
}

/// What a policy does when the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Decide in this process with the node's share of the limit.
    #[default]
    Local,
    /// Allow.
    Open,
    /// Deny.
    Closed,
}

impl Policy {
    /// The hash of a policy's name that is stored in its `family`.
    pub fn family_of(name: &str) -> u64 {
        let hash = blake3::hash(name.as_bytes());
        let first = hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }

    /// Whether a check needs a ticket: something of this policy happens at or after settle.
    pub fn needs_ticket(&self, terms: &Terms) -> bool {
        terms.cost.is_priced_at_settle()
            || terms.limit.takes_lease()
            || !terms.credits.is_empty()
            || !self.bans.is_empty()
            || self.watch.is_some()
    }

    /// Whether it counts requests in progress, with one of its tiers at least.
    pub fn takes_lease(&self) -> bool {
        let terms = self.base.iter().chain(self.tiers.iter().map(|tier| &tier.terms));
        terms.into_iter().any(|terms| terms.limit.takes_lease())
    }

    /// The weights of all its costs.
    pub fn weights(&self) -> impl Iterator<Item = &CostWeights> {
        let terms = self.base.iter().chain(self.tiers.iter().map(|tier| &tier.terms));
        terms.filter_map(|terms| terms.cost.weights())
    }

    /// Whether a ban rule or a cost reads the body of an outcome, so that a proxy must keep it.
    pub fn reads_outcome_body(&self) -> bool {
        self.bans.iter().any(|ban| ban.when.reads_body()) || self.cost_fields().next().is_some()
    }

    /// The fields of the outcome's body that have its costs.
    pub fn cost_fields(&self) -> impl Iterator<Item = &CostField> {
        let terms = self.base.iter().chain(self.tiers.iter().map(|tier| &tier.terms));
        terms.flat_map(|terms| match &terms.cost {
            Cost::Body(cost) => cost.from.as_slice(),
            _ => &[],
        })
    }

    /// The terms of a ticket's tier. A catalog reloaded since the check may have removed the tier;
    /// then the policy's own terms apply.
    pub fn terms_of(&self, tier: Option<u32>) -> Option<&Terms> {
        let tiered = tier.and_then(|id| self.tiers.iter().find(|tier| tier.id == id));
        tiered.map(|tier| &tier.terms).or(self.base.as_ref())
    }
}

impl Mode {
    /// The mode as it is written in the catalog and in decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
