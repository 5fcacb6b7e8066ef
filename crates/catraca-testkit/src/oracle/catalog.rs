//! The oracle's catalog: plain data with every default written out.
//!
//! Tests and the generator build these values directly; nothing here parses or validates.

use super::Micros;
use super::outcome::Condition;
use super::select::active_terms;

/// Policies, gates and lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// All policies, in file order.
    pub policies: Vec<Policy>,
    /// Named gates. Every policy is also a gate of its own name.
    pub gates: Vec<Gate>,
    /// The policy of unknown gates.
    pub default: Option<String>,
    /// Entries whose checks are always allowed.
    pub allowlist: Vec<ListEntry>,
    /// Entries whose checks are always denied.
    pub blocklist: Vec<ListEntry>,
    /// Facts about values of attributes.
    pub facts: Vec<Fact>,
}

/// An ordered set of policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// The name, which checks use.
    pub name: String,
    /// Names of its policies, in order.
    pub policies: Vec<String>,
}

/// An allowlist or blocklist entry for one attribute value.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEntry {
    /// The attribute.
    pub attribute: String,
    /// The listed value.
    pub value: String,
    /// The end of the entry, or `FOREVER`.
    pub until: Micros,
}

/// A policy: its keys, limit, prices and penalties.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The name, which is also the name of a gate with this policy alone.
    pub name: String,
    /// The parts of the key; each is a list of attributes of which the first present one counts.
    pub by: Vec<Vec<String>>,
    /// Attributes that each have their own key; excludes `by`.
    pub each: Vec<String>,
    /// The terms when no tier matches.
    pub terms: Terms,
    /// Other terms for some subjects; the first match wins.
    pub tiers: Vec<Tier>,
    /// The policy used instead when a key attribute is missing or no limit applies.
    pub otherwise: Option<String>,
    /// The effect of a missing key attribute when there is no `otherwise`.
    pub on_missing: OnMissing,
    /// Whether it can deny.
    pub mode: Mode,
    /// Units held at check when the price is known only at settle.
    pub reserve: i64,
    /// The lifetime of a ticket or a lease.
    pub hold: Micros,
    /// The lifetime of a `ref`.
    pub remember: Micros,
    /// Whether a settle may take more than is free.
    pub debt: bool,
    /// Whether denials by this policy's own limit are also counted.
    pub count_denied: bool,
    /// The percentage of a bucket's size that is used.
    pub margin: Option<i64>,
    /// Ban rules, in file order.
    pub bans: Vec<Ban>,
    /// The ratio monitor.
    pub watch: Option<Watch>,
}

/// A fact about a value of an attribute, by which tiers are selected.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The attribute.
    pub attribute: String,
    /// Its value.
    pub about: String,
    /// The name of the fact.
    pub name: String,
    /// The value of the fact.
    pub value: String,
}

/// The fields of a policy that a tier may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The algorithm and its numbers.
    pub algorithm: Algorithm,
    /// The block that exceeding the limit starts.
    pub block: Option<Length>,
    /// The cost rule.
    pub cost: Cost,
    /// The credits of late events.
    pub credits: Vec<Credit>,
}

/// The condition of a tier: names, each with the values of which a subject must have one. Names and
/// values are sorted, because their order makes no other tier.
pub type When = Vec<(String, Vec<String>)>;

/// Terms for the subjects that meet a condition; a field that is `None` is the policy's.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// The condition that selects the tier.
    pub when: When,
    /// Other numbers of the same algorithm.
    pub algorithm: Option<Algorithm>,
    /// Another block.
    pub block: Option<Length>,
    /// Another price.
    pub cost: Option<Cost>,
    /// Other credits, in place of all of the policy's.
    pub credits: Option<Vec<Credit>>,
}

/// The algorithm of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// No limit; the policy only bans.
    None,
    /// A token bucket that refills `count` tokens per `period`.
    Bucket {
        /// The maximum balance.
        size: i64,
        /// Tokens refilled per period.
        count: i64,
        /// The period.
        period: Micros,
    },
    /// Exact sliding windows, each `(limit, span)`; all must fit.
    Window(Vec<(i64, Micros)>),
    /// A fixed window.
    Fixed {
        /// Units in one window.
        limit: i64,
        /// Its length.
        span: Micros,
        /// Whether it starts at multiples of its length rather than at the first unit.
        aligned: bool,
    },
    /// A limit of concurrent checks.
    Inflight(i64),
}

/// The cost rule of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Cost {
    /// The cost in the request, 1 by default.
    Asked,
    /// A fixed cost.
    Always(i64),
    /// By outcome: `("200" | "4xx" | "none" | "default", price)`.
    Table(Vec<(String, Price)>),
    /// The cost that the outcome reports.
    Reported,
}

/// One price of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// A number of units.
    Units(i64),
    /// All free units.
    Drain,
}

/// The credit of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Credit {
    /// The name of the event.
    pub event: String,
    /// The tokens that it returns.
    pub amount: i64,
    /// The statuses for which it applies.
    pub on: Vec<i64>,
}

/// The length of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// The same for every offence; `FOREVER` for no end.
    Fixed(Micros),
    /// Longer with each offence.
    Escalating {
        /// The length of the first block.
        first: Micros,
        /// The factor of each repetition.
        factor: i64,
        /// The maximum length.
        max: Micros,
        /// How long after the end of a block the level is remembered.
        forget: Micros,
    },
}

/// A ban rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Ban {
    /// The condition on the outcome.
    pub when: Condition,
    /// The length of the ban.
    pub length: Length,
    /// The reason recorded with the block.
    pub reason: String,
    /// `(n, span)`: bans only at n strikes inside the span.
    pub after: Option<(i64, Micros)>,
}

/// A ratio watch: bans when too large a share of the outcomes has certain statuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The statuses whose share is watched.
    pub share: Vec<i64>,
    /// The statuses that count at all.
    pub of: Vec<i64>,
    /// The percentage above which it bans.
    pub above: i64,
    /// The minimum number of outcomes for a ban.
    pub min: i64,
    /// The length of the observed period.
    pub per: Micros,
    /// The length of the ban.
    pub length: Length,
}

/// The mode of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It can deny.
    Enforce,
    /// It counts but never denies.
    Shadow,
    /// It is ignored.
    Off,
}

/// The effect of a missing key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// The whole call is refused.
    Error,
    /// The policy has no row.
    Skip,
    /// The policy has a row that denies.
    Deny,
}

/// Default `hold`: 60 s.
pub const HOLD: Micros = 60_000_000;

/// Default `hold` of a policy that only bans: 10 min.
pub const HOLD_WITHOUT_LIMIT: Micros = 600_000_000;

/// Default `remember`: 24 h.
pub const REMEMBER: Micros = 86_400_000_000;

impl Policy {
    /// A policy of that name by `ip`, with every other field at its default.
    pub fn new(name: &str, algorithm: Algorithm) -> Policy {
        let hold = default_hold(&algorithm);
        Policy {
            name: name.to_owned(),
            by: vec![vec!["ip".to_owned()]],
            each: Vec::new(),
            terms: Terms { algorithm, block: None, cost: Cost::Asked, credits: Vec::new() },
            tiers: Vec::new(),
            otherwise: None,
            on_missing: OnMissing::Error,
            mode: Mode::Enforce,
            reserve: 1,
            hold,
            remember: REMEMBER,
            debt: false,
            count_denied: false,
            margin: None,
            bans: Vec::new(),
            watch: None,
        }
    }
}

/// The `hold` of a policy that has none.
pub fn default_hold(algorithm: &Algorithm) -> Micros {
    if let Algorithm::None = algorithm { HOLD_WITHOUT_LIMIT } else { HOLD }
}

impl Policy {
    /// Whether the policy limits the subjects of its tiers alone.
    pub fn limits_only_tiers(&self) -> bool {
        let has_limit =
            |tier: &Tier| tier.algorithm.as_ref().is_some_and(|own| *own != Algorithm::None);
        self.terms.algorithm == Algorithm::None && self.tiers.iter().any(has_limit)
    }

    /// Whether an algorithm has the numbers of the policy's own.
    pub fn same_limit(&self, other: &Algorithm) -> bool {
        let bucket = |algorithm: &Algorithm| match *algorithm {
            Algorithm::Bucket { size, count, period } => {
                Some(active_terms(self, None).bucket(size, count, period))
            }
            _ => None,
        };
        let own = &self.terms.algorithm;
        own == other || bucket(own).is_some_and(|own| bucket(other) == Some(own))
    }
}

impl Catalog {
    /// The attribute that a name is a fact about, if it is a fact.
    pub fn source(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|fact| fact.name == name)?;
        Some(&fact.attribute)
    }

    /// A fact about a value of an attribute.
    pub fn fact(&self, attribute: &str, about: &str, name: &str) -> Option<&String> {
        let is_it = |fact: &&Fact| fact.attribute == attribute && fact.about == about;
        let fact = self.facts.iter().filter(is_it).find(|fact| fact.name == name)?;
        Some(&fact.value)
    }

    /// The policy of that name.
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.iter().find(|policy| policy.name == name)
    }
}
