//! What callers ask: a check, with its bounds.
//!
//! Must not hold more than was asked; the other calls take plain arguments.

use std::fmt;

use crate::refusal::Refusal;
use crate::subject::Subject;

/// The largest cost a caller may state: far above any limit, far below any overflow.
pub const COST_MAX: i64 = 1 << 40;
/// The statuses that an answer can have.
pub const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;
/// The longest attribute value, in bytes.
pub const VALUE_BYTES_MAX: usize = 256;
/// The longest gate name, reference or event, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// The longest reason of a block, in characters.
pub const REASON_MAX: usize = 1_000;
/// The namespace of callers that have none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// May this caller pass now?
#[derive(Clone, Debug, PartialEq)]
pub struct Check<'a> {
    /// The isolation unit of keys; never from the caller.
    pub namespace: &'a str,
    /// The gate, or a single policy.
    pub gate: &'a str,
    /// Who asks.
    pub subject: Subject<'a>,
    /// Units asked for.
    pub cost: Option<i64>,
    /// A name by which a later event will find this check.
    pub reference: Option<&'a str>,
    /// Whether allowlist and blocklist are looked at.
    pub lists: bool,
}

impl<'a> Check<'a> {
    /// A plain check in the default namespace.
    pub fn new(gate: &'a str, subject: impl Into<Subject<'a>>) -> Self {
        let subject = subject.into();
        let namespace = DEFAULT_NAMESPACE;
        Self { namespace, gate, subject, cost: None, reference: None, lists: true }
    }

    /// Asks for this many units.
    #[must_use]
    pub fn cost(mut self, cost: i64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Remembers the check under a reference.
    #[must_use]
    pub fn reference(mut self, reference: &'a str) -> Self {
        self.reference = Some(reference);
        self
    }

    /// Asks in another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Skips allowlist and blocklist.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.lists = false;
        self
    }

    /// Refuses what is out of bounds.
    pub fn validate(&self) -> Result<(), Refusal> {
        storable("the namespace", self.namespace)?;
        name_in_bounds("the gate", self.gate)?;
        self.reference.map_or(Ok(()), |name| name_in_bounds("the reference", name))?;
        self.cost.map_or(Ok(()), cost_in_bounds)
    }
}

/// Refuses an empty or overlong name.
pub fn name_in_bounds(what: &'static str, name: &str) -> Result<(), Refusal> {
    let bytes = name.len();
    if bytes == 0 || bytes > NAME_BYTES_MAX {
        return Err(Refusal::BadName { what, bytes, max: NAME_BYTES_MAX });
    }
    storable(what, name)
}

/// Whether every store and all records can hold a text: PostgreSQL holds none with U+0000.
#[inline]
pub fn is_storable(text: &str) -> bool {
    !text.as_bytes().contains(&0)
}

/// Refuses a text that could be acknowledged and then lost.
pub fn storable(what: impl fmt::Display, text: &str) -> Result<(), Refusal> {
    if is_storable(text) { Ok(()) } else { Err(Refusal::BadText { what: what.to_string() }) }
}

/// Refuses a negative or absurd cost.
pub fn cost_in_bounds(cost: i64) -> Result<(), Refusal> {
    if (0..=COST_MAX).contains(&cost) { Ok(()) } else { Err(Refusal::BadCost(cost)) }
}

/// Refuses a status that no answer can have.
pub fn status_in_bounds(status: u16) -> Result<(), Refusal> {
    if STATUSES.contains(&status) { Ok(()) } else { Err(Refusal::BadStatus(status)) }
}

/// Refuses an overlong reason: it is kept, and shown whole.
pub fn reason_in_bounds(reason: &str) -> Result<(), Refusal> {
    storable("the reason", reason)?;
    let characters = reason.chars().count();
    if characters > REASON_MAX { Err(Refusal::LongReason(characters)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_that_is_kept_holds_u0000() {
        let refused = |what: &str| Err(Refusal::BadText { what: what.to_owned() });
        assert_eq!(name_in_bounds("the event", "pay\0ment"), refused("the event"));
        assert_eq!(reason_in_bounds("\0"), refused("the reason"));
        let check = |gate, namespace| Check::new(gate, [("ip", "::1")]).namespace(namespace);
        assert_eq!(check("a\0", "default").validate(), refused("the gate"));
        assert_eq!(check("a", "b\0").validate(), refused("the namespace"));
        let check = check("a", "default");
        assert_eq!(check.clone().reference("r\0").validate(), refused("the reference"));
        assert_eq!(check.reference("\u{1}\u{2400}").validate(), Ok(()));
    }
}
