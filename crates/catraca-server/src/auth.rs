//! API keys, roles and callers, for every front end.
//!
//! A front end reads the key from its protocol, asks `Guard` for the caller, compares roles, and
//! turns an `AuthError` into a response of its own. With keys a request belongs to its key, which
//! names the namespace and may fix attributes; without keys every caller is `local`. Only the
//! hashes of keys are stored. No type of a protocol belongs here.

mod caller;
pub mod hash;
mod keys;
pub mod role;

use std::fmt;
use std::sync::Arc;

pub use caller::Caller;
pub use keys::{ApiKey, check_plain_name as plain_name};
pub use role::Role;

use keys::Keys;

/// Finds the caller of a key.
pub struct Guard {
    keys: Keys,
    metrics_open: bool,
    /// The caller of every request while there are no keys, and of requests that need none.
    local: Arc<Caller>,
}

impl Guard {
    /// A guard for these keys.
    pub fn new(keys: &[ApiKey], metrics: MetricsAccess) -> Self {
        let metrics_open = metrics == MetricsAccess::Open;
        Self { keys: Keys::new(keys), metrics_open, local: Arc::new(Caller::local()) }
    }

    /// Whether requests need a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether the metrics need no key.
    pub fn has_open_metrics(&self) -> bool {
        self.metrics_open
    }

    /// The caller of requests that need no key.
    pub fn local(&self) -> Arc<Caller> {
        Arc::clone(&self.local)
    }

    /// The caller of the key that a request presents; without keys, the local one.
    pub fn caller(&self, key: Option<&[u8]>) -> Result<Arc<Caller>, AuthError> {
        if self.keys.is_empty() {
            return Ok(self.local());
        }
        let key = key.ok_or(AuthError::NoKey)?;
        self.keys.find(key).ok_or(AuthError::UnknownKey)
    }
}

/// Which clients may read the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Those with a key of the role `read`.
    Read,
    /// All.
    Open,
}

/// Why a caller may not do what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// It presented no key.
    NoKey,
    /// Its key is unknown or malformed; the two are never distinguished.
    UnknownKey,
    /// Its role does not include this one.
    RoleTooLow(Role),
    /// The call covers all namespaces, and its key is bound to one.
    NamespaceBound,
    /// It named a namespace, and its key is bound to another one.
    OtherNamespace(String),
    /// Its key fixes this attribute to another value.
    FixedAttribute(String),
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey => f.write_str("missing API key; `catraca keygen` makes one"),
            Self::UnknownKey => f.write_str(
                "unknown API key: send another one, or add its hash to the catalog as an \
                 `[[auth.key]]`",
            ),
            Self::RoleTooLow(least) => {
                let or_admin = if *least == Role::Admin { "" } else { " or admin" };
                write!(f, "this call needs a key of role {}{or_admin}", least.as_str())
            }
            Self::NamespaceBound => f.write_str(
                "this call covers all namespaces, and this key is bound to one; use a key without \
                 `namespace`",
            ),
            Self::OtherNamespace(own) => {
                write!(f, "this key is bound to the namespace `{own}`; leave `namespace` out")
            }
            Self::FixedAttribute(name) => {
                write!(f, "this key fixes the attribute `{name}` to another value; leave it out")
            }
        }
    }
}
