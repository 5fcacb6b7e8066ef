//! A gate of any limiter, with the names of its attributes.

use catraca_core::decision::Decision;
use catraca_core::policy::Name;
use catraca_core::request::{Check, DEFAULT_NAMESPACE};
use catraca_core::subject::{AttributeValue, Subject};

use super::Limiter;
use crate::error::Error;

/// A gate of a limiter, with the names of the attributes that its checks send, for the state of an
/// application that may move from an engine in its process to a server.
///
/// A server alone knows its catalog, so a misspelt name is an error of the first check and not of
/// the handle: `Client::verify` looks for it at the start. The handle of an engine alone is that of
/// [`Engine::gate`](crate::Engine::gate). Clones of a handle over an `Arc` or a `Client` share it.
///
/// ```
/// use std::sync::Arc;
///
/// use catraca::{Catalog, Engine, Error, Limiter, LimiterGate};
///
/// struct AppState<L> {
///     login: LimiterGate<L>,
/// }
///
/// async fn may_log_in(state: &AppState<impl Limiter>, ip: &str) -> Result<bool, Error> {
///     Ok(state.login.check([ip]).await?.allowed)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 15m'")?;
/// let limiter = Arc::new(Engine::new(catalog)); // or `Client::from_env().build()?`
/// let state = AppState { login: LimiterGate::new(limiter, "login", ["ip"]) };
/// assert!(may_log_in(&state, "198.51.100.7").await?);
/// assert!(!may_log_in(&state, "198.51.100.7").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LimiterGate<L, const N: usize = 1> {
    limiter: L,
    gate: Name,
    attributes: [Name; N],
    namespace: Name,
}

impl<L, const N: usize> LimiterGate<L, N> {
    /// A gate and its attributes, in the order of their values.
    pub fn new(limiter: L, gate: &str, attributes: [&str; N]) -> Self {
        let attributes = attributes.map(Name::from);
        Self { limiter, gate: gate.into(), attributes, namespace: DEFAULT_NAMESPACE.into() }
    }

    /// Uses another namespace, which separates the counters of tenants. A server takes it from the
    /// API key, so a client refuses another one.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The limiter, to settle a check or to give credit.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    /// A check of this gate, to add a cost or a reference to, for [`Self::decide`]. An empty value
    /// counts as absent.
    pub fn request<'a, V: Into<AttributeValue<'a>>>(&'a self, values: [V; N]) -> Check<'a> {
        let pairs = self.attributes.iter().zip(values);
        let subject = pairs.map(|(name, value)| (&**name, value)).collect::<Subject<'a>>();
        Check::new(&self.gate, subject).namespace(&self.namespace)
    }
}

impl<L: Limiter, const N: usize> LimiterGate<L, N> {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    pub fn check<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
    ) -> impl Future<Output = Result<Decision, Error>> + Send {
        let check = self.request(values);
        async move { self.limiter.check(&check).await }
    }

    /// Like [`Self::check`], with a cost of this many units.
    pub fn check_cost<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
        cost: i64,
    ) -> impl Future<Output = Result<Decision, Error>> + Send {
        let check = self.request(values).cost(cost);
        async move { self.limiter.check(&check).await }
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    pub fn peek<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
    ) -> impl Future<Output = Result<Decision, Error>> + Send {
        let check = self.request(values);
        async move { self.limiter.peek(&check).await }
    }

    /// Decides a check that [`Self::request`] made.
    pub async fn decide(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.limiter.check(check).await
    }
}
