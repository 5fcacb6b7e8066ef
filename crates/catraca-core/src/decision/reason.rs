//! The reasons of decisions and their words: one table, which every interface reads.

use std::fmt;

/// Defines the reasons, their words and the lists of both, in the order of the table.
macro_rules! reasons {
    ($( #[$doc:meta] $variant:ident = $word:literal ),+ $(,)?) => {
        /// Why a decision or a row is allowed or denied.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Reason { $( #[$doc] $variant ),+ }

        impl Reason {
            /// All reasons; `reason as usize` is the index of one.
            pub const ALL: &[Self] = &[ $( Self::$variant ),+ ];

            /// The names of all reasons, in the same order.
            pub const NAMES: &[&str] = &[ $( $word ),+ ];
        }
    };
}

reasons! {
    /// Enough units are free.
    Ok = "ok",
    /// Too few units are free now.
    OverLimit = "over_limit",
    /// A block is active.
    Blocked = "blocked",
    /// An entry of the blocklist denies.
    Blocklisted = "blocklisted",
    /// An entry of the allowlist allows.
    Allowlisted = "allowlisted",
    /// The amount is larger than the capacity, so it can never fit.
    TooCostly = "too_costly",
    /// A key attribute is missing, and the policy denies in that case.
    Missing = "missing",
    /// The store is unavailable, and the policy denies in that case.
    Unavailable = "unavailable",
}

impl Reason {
    /// The name of the reason on every interface.
    #[inline]
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
