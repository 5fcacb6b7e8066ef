//! The trait of everything that decides: an engine in this process, or a server.
//!
//! A program that is written against [`Limiter`] moves from one to the other by the line that
//! builds the limiter. The trait has the operations of a program that protects something. What
//! operators do (block, reset, reload) is not part of it.

mod gate;
#[cfg(any(feature = "client", feature = "shared", feature = "tower"))]
mod wait;

use std::future::Future;
use std::sync::Arc;

use catraca_core::decision::Decision;
use catraca_core::request::Check;

#[cfg(feature = "shared")]
use crate::app::{App, AppError};
use crate::engine::{Credit, Engine, Settle};
use crate::error::Error;
use crate::settlement::{CreditResult, Settlement};
use crate::store::Store;
#[cfg(feature = "shared")]
use crate::store::StoreError;

pub use gate::LimiterGate;
#[cfg(any(feature = "client", feature = "shared", feature = "tower"))]
pub use wait::check_until_ready;

/// What a program asks of Catraca, whether the decision is made in this process or by a server.
///
/// A denial is a [`Decision`]. An [`Error`] means that there is none, and never that the caller may
/// pass. A future does nothing until it is polled; that of an [`Engine`] is then ready at once.
///
/// With this trait in scope, `check` of an `Arc<Engine>` is the one of the trait. `(*engine).check`
/// is the plain function.
///
/// ```
/// use catraca::{Catalog, Check, Engine, Error, Limiter};
///
/// async fn may_log_in(limiter: &impl Limiter, ip: &str) -> Result<bool, Error> {
///     Ok(limiter.check(&Check::new("login", [("ip", ip)])).await?.allowed)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1h'")?;
/// let limiter = Engine::new(catalog); // or `App::over_store(..)`, over a store that nodes share
/// assert!(may_log_in(&limiter, "198.51.100.7").await?);
/// assert!(!may_log_in(&limiter, "198.51.100.7").await?);
/// # Ok(())
/// # }
/// ```
pub trait Limiter: Send + Sync {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    fn check(&self, check: &Check<'_>) -> impl Future<Output = Result<Decision, Error>> + Send;

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    fn peek(&self, check: &Check<'_>) -> impl Future<Output = Result<Decision, Error>> + Send;

    /// Applies the outcome of an admitted check, once. A second settle returns the first result.
    fn settle(&self, call: &Settle<'_>) -> impl Future<Output = Result<Settlement, Error>> + Send;

    /// Gives units back for a later event, once per reference and event.
    fn credit(
        &self,
        call: &Credit<'_, '_>,
    ) -> impl Future<Output = Result<CreditResult, Error>> + Send;
}

impl<S: Store> Limiter for Engine<S> {
    async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.check(check)
    }

    async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.peek(check)
    }

    async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        self.settle(call)
    }

    async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        self.credit(call.namespace, call.reference, call.event, call.subject)
    }
}

#[cfg(feature = "shared")]
impl Limiter for App {
    async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.check(check).await
    }

    async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.peek(check).await
    }

    async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        match self.settle(call).await {
            Ok(answer) => Ok(answer.settlement),
            Err(AppError::Call(error)) => Err(error),
            // The thread that applied it ended without a result.
            Err(error) => Err(StoreError::unavailable(error.to_string()).into()),
        }
    }

    async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        self.credit(call).await
    }
}

/// Passes every operation on to the limiter that a pointer points to.
macro_rules! limiter_behind_pointer {
    ($($pointer:ty),*) => {$(
        impl<L: Limiter> Limiter for $pointer {
            fn check(
                &self,
                check: &Check<'_>,
            ) -> impl Future<Output = Result<Decision, Error>> + Send {
                L::check(self, check)
            }

            fn peek(
                &self,
                check: &Check<'_>,
            ) -> impl Future<Output = Result<Decision, Error>> + Send {
                L::peek(self, check)
            }

            fn settle(
                &self,
                call: &Settle<'_>,
            ) -> impl Future<Output = Result<Settlement, Error>> + Send {
                L::settle(self, call)
            }

            fn credit(
                &self,
                call: &Credit<'_, '_>,
            ) -> impl Future<Output = Result<CreditResult, Error>> + Send {
                L::credit(self, call)
            }
        }
    )*};
}

limiter_behind_pointer!(&L, Arc<L>);
