//! The roles of API keys.
//!
//! Must depend on no other module: the integration tests include this file.

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read states and the catalog.
    Read,
    /// Check, settle and credit.
    Check,
    /// Find out why a caller is denied, and release its blocks.
    Support,
    /// Everything.
    Admin,
}

/// Every role by its name.
pub const ROLES: [(&str, Role); 4] = [
    ("read", Role::Read),
    ("check", Role::Check),
    ("support", Role::Support),
    ("admin", Role::Admin),
];

impl Role {
    /// The name of the role in the catalog.
    pub fn as_str(self) -> &'static str {
        ROLES[self as usize].0
    }

    /// Whether people have keys of this role, and may call from a browser.
    pub fn is_of_operators(self) -> bool {
        matches!(self, Self::Support | Self::Admin)
    }

    /// Whether a key of this role may do what another role may: every role may read, and an admin
    /// may do everything. Neither of check and support includes the other.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::Admin || other == Self::Read
    }
}
