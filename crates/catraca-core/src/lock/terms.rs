//! Lock settings of the catalog (`[locks]`): TTLs of each kind, and durability.
//!
//! The catalog reader refuses values out of bounds, so these are always valid.

use std::collections::BTreeMap;

use super::refusal::LockRefusal;
use crate::time::Span;

/// The longest TTL that the catalog may set.
pub const TTL_MAX: Span = Span::from_secs(86_400);
/// The longest that the catalog may let renewals extend a lease.
pub const HOLD_MAX: Span = Span::from_secs(7 * 86_400);
/// The longest slot that the catalog may allow.
pub const SLOT_MAX: Span = Span::from_secs(366 * 86_400);
/// The longest wait that the catalog may allow.
pub const WAIT_MAX: Span = Span::from_secs(30);
/// The most replicas that a grant may wait for.
pub const REPLICAS_MAX: i64 = 16;
/// The most kinds that a catalog may define.
pub const KINDS_MAX: usize = 64;
/// The kind of requests without one. Its terms also apply to kinds that the catalog does not
/// define.
pub const DEFAULT_KIND: &str = "default";
/// The kind of holds without one.
pub const SLOT_KIND: &str = "appointment";

/// The settings in `[locks]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTerms {
    /// When a grant is answered.
    pub durability: Durability,
    /// How many replicas of a shared store must have received a grant before it is answered.
    pub replicas: u32,
    /// The longest slot.
    pub slot_max: Span,
    /// The longest time that a caller may wait for a name.
    pub wait_max: Span,
    /// The terms of each kind; `default` is always present.
    pub kinds: BTreeMap<Box<str>, KindTerms>,
}

/// When a grant is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once. After a crash, a start grants nothing until every lost lease has expired.
    #[default]
    Memory,
    /// When it is on disk.
    Fsync,
}

/// The terms of the leases of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTerms {
    /// The default TTL.
    pub ttl: Span,
    /// The longest TTL of a request.
    pub ttl_max: Span,
    /// How long renewals may extend a lease, from its grant.
    pub hold_max: Span,
    /// How a version is interpreted.
    pub version_policy: VersionPolicy,
    /// Whether nothing is granted after a failover until every lost lease has expired.
    pub failover_grace: bool,
}

/// How the version of a request is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionPolicy {
    /// It is stored and returned, and has no effect.
    #[default]
    Opaque,
    /// Each grant of a name must have a higher version than the last.
    Monotonic,
}

impl VersionPolicy {
    /// The name of each policy in the catalog.
    pub const WORDS: [(&'static str, Self); 2] =
        [("opaque", Self::Opaque), ("monotonic", Self::Monotonic)];
}

impl Durability {
    /// The name of each durability in the catalog.
    pub const WORDS: [(&'static str, Self); 2] = [("memory", Self::Memory), ("fsync", Self::Fsync)];

    /// The name in the catalog.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fsync => "fsync",
        }
    }
}

impl LockTerms {
    /// The terms of a kind, or those of `default`.
    pub fn kind(&self, kind: &str) -> KindTerms {
        let named = self.kinds.get(kind).or_else(|| self.kinds.get(DEFAULT_KIND));
        named.copied().unwrap_or_default()
    }

    /// The TTL of a request: the requested one if it is within bounds, else the default of the
    /// kind.
    pub fn ttl(&self, kind: &str, requested_ms: Option<i64>) -> Result<Span, LockRefusal> {
        let terms = self.kind(kind);
        duration_within("ttl_ms", requested_ms, terms.ttl, terms.ttl_max)
    }

    /// How long nothing of a kind is granted after a store may have lost leases: as long as the
    /// longest of them can last, or zero without `failover_grace`.
    pub fn grace(&self, kind: &str) -> Span {
        let terms = self.kind(kind);
        if terms.failover_grace { terms.ttl_max } else { Span::ZERO }
    }

    /// How long a request waits: as requested, at most `wait_max`. Zero by default.
    pub fn wait(&self, requested_ms: Option<i64>) -> Result<Span, LockRefusal> {
        match requested_ms.unwrap_or(0) {
            0 => Ok(Span::ZERO),
            _ => duration_within("wait_ms", requested_ms, Span::ZERO, self.wait_max),
        }
    }

    /// How long renewals may extend a lease: as requested, at most the `hold_max` of the kind.
    pub fn hold(&self, kind: &str, requested_ms: Option<i64>) -> Result<Span, LockRefusal> {
        let terms = self.kind(kind);
        duration_within("max_hold_ms", requested_ms, terms.hold_max, terms.hold_max)
    }
}

/// A requested duration in milliseconds if it is from 1 to `max`, or the default.
fn duration_within(
    field: &'static str,
    requested_ms: Option<i64>,
    default: Span,
    max: Span,
) -> Result<Span, LockRefusal> {
    let Some(requested) = requested_ms else { return Ok(default) };
    if requested < 1 || Span::from_millis(requested) > max {
        let wanted = format!("a whole number from 1 to {}", max.ceil_millis());
        return Err(LockRefusal::Bounds { field, given: requested.to_string(), wanted });
    }
    Ok(Span::from_millis(requested))
}

impl KindTerms {
    /// A kind with this TTL, and defaults for the other terms.
    pub const fn with_ttl(ttl: Span) -> Self {
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
        Self::with_ttl(Span::from_secs(5))
    }
}

impl Default for LockTerms {
    fn default() -> Self {
        let kinds = [("appointment", 10), ("payment", 30), ("resource", 5), (DEFAULT_KIND, 5)];
        let kinds = kinds.into_iter().map(|(name, secs)| {
            // A payment that is made twice is worse than one that is made later.
            let failover_grace = name == "payment";
            let terms = KindTerms::with_ttl(Span::from_secs(secs));
            (Box::from(name), KindTerms { failover_grace, ..terms })
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

    #[test]
    fn a_wait_of_zero_is_none() {
        let terms = LockTerms::default();
        assert_eq!(terms.wait(None), Ok(Span::ZERO));
        assert_eq!(terms.wait(Some(0)), Ok(Span::ZERO));
        assert_eq!(terms.wait(Some(-1)).unwrap_err().code(), "bad-lock");
    }

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
