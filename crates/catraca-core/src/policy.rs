//! A policy: who is counted, how much, and what then. Plain, validated data.
//!
//! Built only by the catalog's reader, so every value here already makes sense.
//! Must not decide anything: selecting and planning do.

use std::fmt;
use std::sync::Arc;

use crate::condition::Condition;
use crate::limit::{Limit, Penalty};
use crate::price::{Cost, StatusSet};
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// A name shared by everything that mentions it.
pub type Name = Arc<str>;

/// A policy's place in its catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId(pub u16);

/// Who is counted, how much, and what then.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name, unique in the catalog; every policy is also a gate of its own name.
    pub name: Name,
    /// A fingerprint of the name, for what all its keys share.
    pub family: u64,
    /// A label for reports.
    pub group: Option<Name>,
    /// Who is counted.
    pub who: Who,
    /// The policy's own terms; absent when only its tiers have limits.
    pub base: Option<Terms>,
    /// Other terms for some callers; the first match wins.
    pub tiers: Vec<Tier>,
    /// The policy used when a key attribute is missing or no tier matches.
    pub otherwise: Option<PolicyId>,
    /// What happens when neither the key nor `otherwise` helps.
    pub on_missing: OnMissing,
    /// Whether the policy decides.
    pub mode: Mode,
    /// What happens when the store fails.
    pub on_failure: OnFailure,
    /// Whether a settled price may push what is free below zero.
    pub debt: bool,
    /// Whether denials by this policy's own limit are counted too.
    pub count_denied: bool,
    /// Units held at check when the price is known only at settle.
    pub reserve: i64,
    /// How long a ticket may be settled and a lease lives.
    pub hold: Span,
    /// How long a reference is remembered.
    pub remember: Span,
    /// Text for the caller on denial.
    pub message: Option<Name>,
    /// Remaining share of the limit below which an event warns.
    pub low_water: Option<Percent>,
    /// Rules that ban on an outcome.
    pub bans: Vec<Ban>,
    /// A ratio of outcomes that bans.
    pub watch: Option<Watch>,
    /// Beyond this rate of bans the rules turn to shadow for a while.
    pub ban_storm: Option<Rate>,
}

/// What a tier may change: numbers, block, costs and credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The algorithm and its numbers.
    pub limit: Limit,
    /// The block that an excess starts.
    pub block: Option<Penalty>,
    /// The price of a request.
    pub cost: Cost,
    /// Late events that give back.
    pub credits: Vec<Credit>,
}

/// Terms for the callers that match.
#[derive(Clone, Debug)]
pub struct Tier {
    /// Each attribute must have one of its values.
    pub when: Vec<(Name, Vec<Name>)>,
    /// The terms, with what the tier leaves out taken from the policy.
    pub terms: Terms,
    /// What tickets call it: a fingerprint of `when`, the same wherever the tier stands.
    pub id: u32,
}

/// Whom a policy counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// One key made of several parts; empty counts everybody together.
    By(Vec<Part>),
    /// One key for each of these attributes that is present.
    Each(Vec<Name>),
}

/// One part of a key: the first of these attributes that is present.
pub type Part = Vec<Name>;

/// A late event that gives units back to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The event's name.
    pub event: Name,
    /// Units given back.
    pub amount: i64,
    /// The settled statuses that earn it; absent means any.
    pub on: Option<StatusSet>,
}

/// A rule that bans on an outcome.
#[derive(Clone, Debug)]
pub struct Ban {
    /// The condition.
    pub when: Condition,
    /// How long, and how repeats lengthen it.
    pub penalty: Penalty,
    /// Why, for operators.
    pub reason: Name,
    /// How many times before it bans; absent means once.
    pub after: Option<Rate>,
    /// The status a gateway answers to the request that triggered the ban, and to later ones.
    pub status: Option<u16>,
    /// Text for the caller.
    pub message: Option<Name>,
}

/// A ratio of outcomes that bans when it is too high.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Statuses that count as the part.
    pub share: StatusSet,
    /// Statuses that count as the whole.
    pub of: StatusSet,
    /// The ratio that must be exceeded.
    pub above: Percent,
    /// The least whole that is judged.
    pub min: i64,
    /// The time looked back upon, in 24 slices.
    pub per: Span,
    /// The ban.
    pub ban: Penalty,
}

/// Whether a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// It decides.
    #[default]
    Enforce,
    /// It is evaluated and shown, and never decides.
    Shadow,
    /// It is not looked at.
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
    /// Decide in process with this node's share of the limit.
    #[default]
    Local,
    /// Let pass.
    Open,
    /// Deny.
    Closed,
}

impl Policy {
    /// The fingerprint of a policy's name.
    pub fn family_of(name: &str) -> u64 {
        let hash = blake3::hash(name.as_bytes());
        let first = hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }

    /// Whether its rows need a ticket: something happens at or after settle.
    pub fn wants_ticket(&self, terms: &Terms) -> bool {
        terms.cost.is_priced_at_settle()
            || matches!(terms.limit, Limit::Inflight(_))
            || !terms.credits.is_empty()
            || !self.bans.is_empty()
            || self.watch.is_some()
    }

    /// The terms of a ticket's tier under this catalog; a tier that is gone falls back to the base.
    pub fn terms_of(&self, tier: Option<u32>) -> Option<&Terms> {
        let tiered = tier.and_then(|id| self.tiers.iter().find(|tier| tier.id == id));
        tiered.map(|tier| &tier.terms).or(self.base.as_ref())
    }
}

impl Mode {
    /// The word used in the catalog and in decisions.
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
