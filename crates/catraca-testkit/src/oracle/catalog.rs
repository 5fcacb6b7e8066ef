//! Policies as the oracle understands them: plain data, already read, with every default written
//! out.
//!
//! It must not parse or validate; whoever builds these values (a test, the generator) says exactly
//! what it means.

use super::Micros;
use super::outcome::Condition;

/// Everything that is in force at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// All policies, in file order.
    pub policies: Vec<Policy>,
    /// Named gates. Every policy is also a gate of its own name.
    pub gates: Vec<Gate>,
    /// The policy behind gates that are not known.
    pub default: Option<String>,
    /// Entries that let a whole gate pass.
    pub allowlist: Vec<Listed>,
    /// Entries that close a whole gate.
    pub blocklist: Vec<Listed>,
}

/// An ordered set of policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What a check asks for.
    pub name: String,
    /// Names of its policies, in order.
    pub policies: Vec<String>,
}

/// A standing entry for one attribute value.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Attribute looked at.
    pub attribute: String,
    /// Value that is listed.
    pub value: String,
    /// When the entry ends; `FOREVER` if it does not.
    pub until: Micros,
}

/// Who is counted, how much, and what then.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name, also that of its own gate.
    pub name: String,
    /// Key parts; each is a list of alternatives of which the first present one is taken.
    pub by: Vec<Vec<String>>,
    /// Attributes that each get a key of their own; excludes `by`.
    pub each: Vec<String>,
    /// The numbers when no tier matches.
    pub terms: Terms,
    /// Other numbers for some subjects; first match wins.
    pub tiers: Vec<Tier>,
    /// The policy used instead when a key attribute is missing or no limit applies.
    pub otherwise: Option<String>,
    /// What a missing key attribute does when there is no `otherwise`.
    pub on_missing: OnMissing,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// Held at check when the price is known only at settle.
    pub reserve: i64,
    /// How long a ticket or a lease of this policy lives.
    pub hold: Micros,
    /// How long a `ref` is remembered.
    pub remember: Micros,
    /// Whether a settle may take more than is free.
    pub debt: bool,
    /// Whether a denial by this policy's own limit is counted as well.
    pub count_denied: bool,
    /// Percentage of a bucket's size that is used.
    pub margin: Option<i64>,
    /// Ban rules, in file order.
    pub bans: Vec<Ban>,
    /// The ratio monitor.
    pub watch: Option<Watch>,
}

/// What a tier may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// How it counts.
    pub algorithm: Algorithm,
    /// What an excess starts.
    pub block: Option<Length>,
    /// The price.
    pub cost: Cost,
    /// What late events give back.
    pub credits: Vec<Credit>,
}

/// Terms for the subjects that have one value of one attribute; what is `None` stays as in the
/// policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Attribute looked at.
    pub attribute: String,
    /// Value that selects the tier.
    pub value: String,
    /// Other numbers of the same algorithm.
    pub algorithm: Option<Algorithm>,
    /// Another block.
    pub block: Option<Length>,
    /// Another price.
    pub cost: Option<Cost>,
    /// Other credits, in place of all of the policy's.
    pub credits: Option<Vec<Credit>>,
}

/// How a policy counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// Counts nothing; only bans.
    None,
    /// Tokens that refill, `count` per `period`.
    Bucket {
        /// Most tokens it holds.
        size: i64,
        /// Tokens that come back...
        count: i64,
        /// ...in this long.
        period: Micros,
    },
    /// Exact sliding windows, each `(limit, span)`; all must fit.
    Window(Vec<(i64, Micros)>),
    /// One window at a time.
    Fixed {
        /// Units in one window.
        limit: i64,
        /// Its length.
        span: Micros,
        /// Whether it starts at multiples of its length rather than at the first unit.
        aligned: bool,
    },
    /// Checks under way at the same time.
    Inflight(i64),
}

/// What a check costs.
#[derive(Clone, Debug, PartialEq)]
pub enum Cost {
    /// Whatever the request says, 1 if it says nothing.
    Asked,
    /// Always this.
    Always(i64),
    /// By outcome: `("200" | "4xx" | "none" | "default", price)`.
    Table(Vec<(String, Price)>),
    /// What the outcome reports.
    Reported,
}

/// One price of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// That many units.
    Units(i64),
    /// Everything that is left.
    Drain,
}

/// What one event gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Credit {
    /// Name of the event.
    pub event: String,
    /// Tokens given back.
    pub amount: i64,
    /// Settled statuses that earn it.
    pub on: Vec<i64>,
}

/// How long a block lasts.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Always this long; `FOREVER` for no end.
    Fixed(Micros),
    /// Longer with each offence.
    Escalating {
        /// Length of the first.
        first: Micros,
        /// What each repeat multiplies it by.
        factor: i64,
        /// Longest.
        max: Micros,
        /// How long after the end of a block the level is remembered.
        forget: Micros,
    },
}

/// A conditional ban.
#[derive(Clone, Debug, PartialEq)]
pub struct Ban {
    /// When it holds.
    pub when: Condition,
    /// How long it bans.
    pub length: Length,
    /// Recorded with the block.
    pub reason: String,
    /// `(n, span)`: bans only at n strikes inside the span.
    pub after: Option<(i64, Micros)>,
}

/// Bans when too large a share of the outcomes has one of some statuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Statuses of the part.
    pub share: Vec<i64>,
    /// Statuses of the whole.
    pub of: Vec<i64>,
    /// Percentage above which it bans.
    pub above: i64,
    /// Least whole for which it bans.
    pub min: i64,
    /// How far back it looks.
    pub per: Micros,
    /// How long it bans.
    pub length: Length,
}

/// Whether a policy's verdict counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It decides.
    Enforce,
    /// It keeps its verdict to itself.
    Shadow,
    /// It is not there.
    Off,
}

/// What a missing key attribute does.
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

/// Default `remember`: 24 h.
pub const REMEMBER: Micros = 86_400_000_000;

impl Policy {
    /// A policy of that name by `ip`, with every other field at its default.
    pub fn new(name: &str, algorithm: Algorithm) -> Policy {
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
            hold: HOLD,
            remember: REMEMBER,
            debt: false,
            count_denied: false,
            margin: None,
            bans: Vec::new(),
            watch: None,
        }
    }
}

impl Catalog {
    /// The policy of that name.
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.policies.iter().find(|policy| policy.name == name)
    }
}
