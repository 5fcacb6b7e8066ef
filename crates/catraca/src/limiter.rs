//! The trait of everything that decides: an engine in this process, or a server.
//!
//! A program that is written against [`Limiter`] moves from one to the other by the line that
//! builds the limiter. The trait has the operations of a program that protects something. What
//! operators do (block, reset, reload) is not part of it.

mod gate;
mod held_ticket;
#[cfg(any(feature = "client", feature = "shared", feature = "tower"))]
mod wait;

use std::future::Future;
use std::sync::Arc;

use catraca_core::decision::Decision;
use catraca_core::outcome::Outcome;
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;

#[cfg(feature = "shared")]
use crate::app::{App, AppError, SettleAnswer};
use crate::engine::{CheckRef, Credit, Engine, GateError, Settle};
use crate::error::Error;
use crate::settlement::{CreditResult, Settlement};
use crate::store::Store;
#[cfg(feature = "shared")]
use crate::store::StoreError;

pub use gate::LimiterGate;
#[doc(hidden)]
pub use held_ticket::{HeldCheck, HeldTicket};
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

    /// A check whose ticket does not leave the process.
    #[doc(hidden)]
    fn check_held(
        &self,
        check: &Check<'_>,
    ) -> impl Future<Output = Result<HeldCheck, Error>> + Send {
        async { Ok(HeldCheck::from_decision(self.check(check).await?)) }
    }

    /// Settles the ticket of [`Self::check_held`].
    #[doc(hidden)]
    fn settle_held(
        &self,
        namespace: &str,
        ticket: HeldTicket,
        outcome: &Outcome,
    ) -> impl Future<Output = Result<Settlement, Error>> + Send {
        async move {
            match ticket {
                HeldTicket::Sealed(ticket) => {
                    let check = CheckRef::Ticket(&ticket);
                    self.settle(&Settle { namespace, check, outcome }).await
                }
                HeldTicket::Unsealed(_) => Err(Refusal::BadTicket.into()),
            }
        }
    }

    /// The error of a gate that the catalog does not declare. A limiter that does not know its
    /// catalog, such as the client of a server, finds none.
    #[doc(hidden)]
    fn find_gate(&self, _gate: &str) -> Result<(), GateError> {
        Ok(())
    }
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
        self.credit(call)
    }

    async fn check_held(&self, check: &Check<'_>) -> Result<HeldCheck, Error> {
        self.check_unsealed(check).map(HeldCheck::with_ticket)
    }

    async fn settle_held(
        &self,
        namespace: &str,
        ticket: HeldTicket,
        outcome: &Outcome,
    ) -> Result<Settlement, Error> {
        match ticket {
            HeldTicket::Unsealed(ticket) => self.settle_unsealed(namespace, *ticket, outcome),
            HeldTicket::Sealed(ticket) => {
                self.settle(&Settle { namespace, check: CheckRef::Ticket(&ticket), outcome })
            }
        }
    }

    fn find_gate(&self, gate: &str) -> Result<(), GateError> {
        self.gate_attributes(gate).map(drop)
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
        settlement_of(self.settle(call).await)
    }

    async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        self.credit(call).await
    }

    async fn check_held(&self, check: &Check<'_>) -> Result<HeldCheck, Error> {
        self.check_unsealed(check).await.map(HeldCheck::with_ticket)
    }

    async fn settle_held(
        &self,
        namespace: &str,
        ticket: HeldTicket,
        outcome: &Outcome,
    ) -> Result<Settlement, Error> {
        settlement_of(match ticket {
            HeldTicket::Unsealed(ticket) => self.settle_unsealed(namespace, *ticket, outcome).await,
            HeldTicket::Sealed(ticket) => {
                let check = CheckRef::Ticket(&ticket);
                self.settle(&Settle { namespace, check, outcome }).await
            }
        })
    }

    fn find_gate(&self, gate: &str) -> Result<(), GateError> {
        self.engine().gate_attributes(gate).map(drop)
    }
}

#[cfg(feature = "shared")]
fn settlement_of(answer: Result<SettleAnswer, AppError>) -> Result<Settlement, Error> {
    match answer {
        Ok(answer) => Ok(answer.settlement),
        Err(AppError::Call(error)) => Err(error),
        // The thread that applied it ended without a result.
        Err(error) => Err(StoreError::unavailable(error.to_string()).into()),
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

            fn check_held(
                &self,
                check: &Check<'_>,
            ) -> impl Future<Output = Result<HeldCheck, Error>> + Send {
                L::check_held(self, check)
            }

            fn settle_held(
                &self,
                namespace: &str,
                ticket: HeldTicket,
                outcome: &Outcome,
            ) -> impl Future<Output = Result<Settlement, Error>> + Send {
                L::settle_held(self, namespace, ticket, outcome)
            }

            fn find_gate(&self, gate: &str) -> Result<(), GateError> {
                L::find_gate(self, gate)
            }
        }
    )*};
}

limiter_behind_pointer!(&L, Arc<L>);
