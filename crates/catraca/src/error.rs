//! Errors of a call: invalid input, or a failing store or server. A denial is not an error.

use std::fmt;

use catraca_core::refusal::Refusal;

#[cfg(feature = "client")]
use crate::client::ClientError;
use crate::store::StoreError;

/// Why a call has no result.
///
/// ```
/// use catraca::{Catalog, Check, Engine, Error};
///
/// let engine = Engine::new(Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1m'")?);
/// let error = engine.check(&Check::new("logn", [("ip", "198.51.100.7")])).unwrap_err();
/// let Error::Refused(refusal) = error else { panic!("the store works") };
/// assert_eq!(refusal.code(), "unknown-gate");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input is invalid. Nothing was changed, and the request must not pass.
    Refused(Refusal),
    /// The store failed.
    Store(StoreError),
    /// The server that decides gave no decision. A call that it refuses is [`Error::Refused`].
    #[cfg(feature = "client")]
    Client(ClientError),
}

impl Error {
    /// The error of the part that failed.
    const fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Store(error) => error,
            #[cfg(feature = "client")]
            Self::Client(error) => error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(feature = "client")]
impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        if error.is_unavailable() {
            return Self::Client(error);
        }
        let code = error.code().unwrap_or_default().to_owned();
        Self::Refused(Refusal::ByServer { code, detail: error.to_string() })
    }
}
