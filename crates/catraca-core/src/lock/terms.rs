//! What the catalog says about locks: how long each kind lasts, and how safely a grant is kept.
//!
//! Must hold only what makes sense: the reader of `[locks]` refuses the rest.

use std::collections::BTreeMap;

use super::refusal::LockRefusal;
use crate::time::Span;

/// The longest TTL that any kind may be given.
pub const TTL_MAX: Span = Span::from_secs(86_400);
/// The longest that renewals may stretch any lease.
pub const HOLD_MAX: Span = Span::from_secs(7 * 86_400);
/// The longest slot that may be asked for.
pub const SLOT_MAX: Span = Span::from_secs(366 * 86_400);
/// The longest that a catalog may let callers wait.
pub const WAIT_MAX: Span = Span::from_secs(30);
/// The most replicas that a grant may wait for.
pub const REPLICAS_MAX: i64 = 16;
/// The most kinds that a catalog may name.
pub const KINDS_MAX: usize = 64;
/// The kind of whatever names none, and of kinds that the catalog does not name.
pub const DEFAULT_KIND: &str = "default";
/// The kind of a hold that names none.
pub const SLOT_KIND: &str = "appointment";

/// Everything that `[locks]` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTerms {
    /// When a grant is answered.
    pub durability: Durability,
    /// How many replicas of a store must have heard of a grant before it is answered.
    pub replicas: u32,
    /// The longest slot.
    pub slot_max: Span,
    /// The longest that anybody may wait for a name.
    pub wait_max: Span,
    /// Each kind by its name; `default` is always there.
    pub kinds: BTreeMap<Box<str>, KindTerms>,
}

/// When a grant is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once. A start after a crash waits until every lost lease has run out.
    #[default]
    Memory,
    /// When it is on disk.
    Fsync,
}

/// How long the leases of one kind last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTerms {
    /// What a request without a TTL gets.
    pub ttl: Span,
    /// The longest TTL that a request may ask for.
    pub ttl_max: Span,
    /// How long renewals may stretch one lease, counted from its grant.
    pub hold_max: Span,
    /// What a version means.
    pub version_policy: VersionPolicy,
    /// Whether nothing is granted after a failover until every lost lease has run out.
    pub failover_grace: bool,
}

/// What a version means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionPolicy {
    /// Nothing to us: it is kept and told back.
    #[default]
    Opaque,
    /// Each grant of a name must have a higher one than the last.
    Monotonic,
}

impl VersionPolicy {
    /// The words for both.
    pub const WORDS: [(&'static str, Self); 2] =
        [("opaque", Self::Opaque), ("monotonic", Self::Monotonic)];
}

impl Durability {
    /// The words for both.
    pub const WORDS: [(&'static str, Self); 2] = [("memory", Self::Memory), ("fsync", Self::Fsync)];

    /// The word for this one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fsync => "fsync",
        }
    }
}

impl LockTerms {
    /// The terms of a kind.
    pub fn kind(&self, kind: &str) -> KindTerms {
        let named = self.kinds.get(kind).or_else(|| self.kinds.get(DEFAULT_KIND));
        named.copied().unwrap_or_default()
    }

    /// The TTL of a request: what it asks for if the kind may have it, else the kind's own.
    pub fn ttl(&self, kind: &str, asked_ms: Option<i64>) -> Result<Span, LockRefusal> {
        let terms = self.kind(kind);
        bounded("ttl_ms", asked_ms, terms.ttl, terms.ttl_max)
    }

    /// How long nothing of a kind is granted after a store may have lost leases: as long as the
    /// longest of them can last, or not at all.
    pub fn grace(&self, kind: &str) -> Span {
        let terms = self.kind(kind);
        if terms.failover_grace { terms.ttl_max } else { Span::ZERO }
    }

    /// How long a request may wait: what it asks for, at most what the catalog lets it.
    pub fn wait(&self, asked_ms: Option<i64>) -> Result<Span, LockRefusal> {
        match asked_ms.unwrap_or(0) {
            0 => Ok(Span::ZERO),
            _ => bounded("wait_ms", asked_ms, Span::ZERO, self.wait_max),
        }
    }

    /// How long renewals may stretch a lease: what was asked for, at most the kind's own.
    pub fn hold(&self, kind: &str, asked_ms: Option<i64>) -> Result<Span, LockRefusal> {
        let terms = self.kind(kind);
        bounded("max_hold_ms", asked_ms, terms.hold_max, terms.hold_max)
    }
}

fn bounded(
    field: &'static str,
    asked_ms: Option<i64>,
    usual: Span,
    most: Span,
) -> Result<Span, LockRefusal> {
    let Some(asked) = asked_ms else { return Ok(usual) };
    if asked < 1 || Span::from_millis(asked) > most {
        let wanted = format!("a whole number from 1 to {}", most.ceil_millis());
        return Err(LockRefusal::Bounds { field, given: asked.to_string(), wanted });
    }
    Ok(Span::from_millis(asked))
}

impl KindTerms {
    /// A kind of this TTL, and all else as usual.
    pub const fn lasting(ttl: Span) -> Self {
        Self {
            ttl,
            ttl_max: Span::from_secs(300),
            hold_max: Span::from_secs(3_600),
            version_policy: VersionPolicy::Opaque,
            failover_grace: false,
        }
    }
}

impl Default for KindTerms {
    fn default() -> Self {
        Self::lasting(Span::from_secs(5))
    }
}

impl Default for LockTerms {
    fn default() -> Self {
        let kinds = [("appointment", 10), ("payment", 30), ("resource", 5), (DEFAULT_KIND, 5)];
        let kinds = kinds.into_iter().map(|(name, secs)| {
            // Paying twice is worse than paying a little later.
            let failover_grace = name == "payment";
            let lasting = KindTerms::lasting(Span::from_secs(secs));
            (Box::from(name), KindTerms { failover_grace, ..lasting })
        });
        Self {
            durability: Durability::Memory,
            replicas: 0,
            slot_max: Span::from_secs(86_400),
            wait_max: WAIT_MAX,
            kinds: kinds.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// covers: 004-22, 004-23, 004-24, 004-25, 004-52
    #[test]
    fn every_kind_has_its_ttl_and_a_bound() {
        let terms = LockTerms::default();
        let secs = |kind: &str| terms.ttl(kind, None).unwrap().ceil_secs();
        assert_eq!(["appointment", "payment", "resource", "default"].map(secs), [10, 30, 5, 5]);
        assert_eq!(secs("anything"), 5);
        assert_eq!(terms.ttl("payment", Some(300_000)), Ok(Span::from_secs(300)));
        for wrong in [0, -1, 300_001, i64::MAX] {
            assert_eq!(terms.ttl("payment", Some(wrong)).unwrap_err().code(), "bad-lock");
        }
        assert!(terms.hold("payment", Some(3_600_001)).is_err());
    }
}
