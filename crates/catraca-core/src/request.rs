//! Check requests, and the bounds of the values in all requests.

use std::fmt;

use crate::refusal::Refusal;
use crate::subject::Subject;

/// The largest cost of a request: far above any limit, and far below any overflow.
pub const COST_MAX: i64 = 1 << 40;
/// The statuses that an HTTP response can have.
pub const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;
/// The longest attribute value, in bytes.
pub const VALUE_BYTES_MAX: usize = 256;
/// The longest gate name, reference or event, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// The longest reason of a block, in characters.
pub const REASON_MAX: usize = 500;
/// The namespace of callers without one.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The most checks in one batch call.
pub const CHECKS_MAX: usize = 100;
/// The longest name of a program that sends checks, in bytes.
pub const CALLER_BYTES_MAX: usize = 64;

/// A request for a decision: may this caller pass now?
#[derive(Clone, Debug, PartialEq)]
pub struct Check<'a> {
    /// Separates the keys of different tenants of the service. Must not be chosen by the caller.
    pub namespace: &'a str,
    /// The name of a gate or of a policy.
    pub gate: &'a str,
    /// The caller's attributes.
    pub subject: Subject<'a>,
    /// The units requested; absent means the policy's default.
    pub cost: Option<i64>,
    /// A name by which a later event can find this check.
    pub reference: Option<&'a str>,
    /// Whether the allowlist and the blocklist apply.
    pub lists: bool,
}

impl<'a> Check<'a> {
    /// A check in the default namespace.
    #[inline]
    pub fn new(gate: &'a str, subject: impl Into<Subject<'a>>) -> Self {
        let subject = subject.into();
        let namespace = DEFAULT_NAMESPACE;
        Self { namespace, gate, subject, cost: None, reference: None, lists: true }
    }

    /// Requests this many units.
    #[must_use]
    pub fn cost(mut self, cost: i64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Stores the check under a reference.
    #[must_use]
    pub fn reference(mut self, reference: &'a str) -> Self {
        self.reference = Some(reference);
        self
    }

    /// Uses another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Ignores the allowlist and the blocklist.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.lists = false;
        self
    }

    /// Refuses values that are out of bounds.
    pub fn validate(&self) -> Result<(), Refusal> {
        validate_storable("the namespace", self.namespace)?;
        validate_name("the gate", self.gate)?;
        self.reference.map_or(Ok(()), |name| validate_name("the reference", name))?;
        self.cost.map_or(Ok(()), validate_cost)
    }
}

/// Refuses an empty or overlong name.
pub fn validate_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    let bytes = name.len();
    if bytes == 0 || bytes > NAME_BYTES_MAX {
        return Err(Refusal::BadName { what, bytes, max: NAME_BYTES_MAX });
    }
    validate_storable(what, name)
}

/// Whether these bytes can name a program that sends checks: `A-Z a-z 0-9 . _ / -`.
pub fn is_caller_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/-".contains(byte);
    (1..=CALLER_BYTES_MAX).contains(&name.len()) && name.iter().all(is_allowed)
}

/// Whether a text can be stored everywhere: PostgreSQL cannot store U+0000.
#[inline]
pub fn is_storable(text: &str) -> bool {
    !text.as_bytes().contains(&0)
}

/// Refuses a text that cannot be stored. Checked before a request is acknowledged, because records
/// are written later.
pub fn validate_storable(what: impl fmt::Display, text: &str) -> Result<(), Refusal> {
    if is_storable(text) { Ok(()) } else { Err(Refusal::BadText { what: what.to_string() }) }
}

/// Refuses a negative cost, or one above [`COST_MAX`].
pub fn validate_cost(cost: i64) -> Result<(), Refusal> {
    if (0..=COST_MAX).contains(&cost) { Ok(()) } else { Err(Refusal::BadCost(cost)) }
}

/// Refuses a number that is not an HTTP status.
pub fn validate_status(status: u16) -> Result<(), Refusal> {
    if STATUSES.contains(&status) { Ok(()) } else { Err(Refusal::BadStatus(status)) }
}

/// Refuses a reason that is too long.
pub fn validate_reason(reason: &str) -> Result<(), Refusal> {
    validate_storable("the reason", reason)?;
    let characters = reason.chars().count();
    if characters > REASON_MAX { Err(Refusal::LongReason(characters)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stored_text_contains_u0000() {
        let refused = |what: &str| Err(Refusal::BadText { what: what.to_owned() });
        assert_eq!(validate_name("the event", "pay\0ment"), refused("the event"));
        assert_eq!(validate_reason("\0"), refused("the reason"));
        let check = |gate, namespace| Check::new(gate, [("ip", "::1")]).namespace(namespace);
        assert_eq!(check("a\0", "default").validate(), refused("the gate"));
        assert_eq!(check("a", "b\0").validate(), refused("the namespace"));
        let check = check("a", "default");
        assert_eq!(check.clone().reference("r\0").validate(), refused("the reference"));
        assert_eq!(check.reference("\u{1}\u{2400}").validate(), Ok(()));
    }
}
