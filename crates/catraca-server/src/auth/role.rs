//! The roles of API keys.
//!
//! Must depend on no other module: the integration tests include this file.

/// What a key may do; each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read states and the catalog.
    Read,
    /// Check, settle and credit.
    Check,
    /// Everything.
    Admin,
}

/// Every role by its name, the lowest first.
pub const ROLES: [(&str, Role); 3] =
    [("read", Role::Read), ("check", Role::Check), ("admin", Role::Admin)];

impl Role {
    /// The name of the role in the catalog.
    pub fn as_str(self) -> &'static str {
        ROLES[self as usize].0
    }
}
