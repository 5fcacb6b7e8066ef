//! Decisions: check, peek, credit, and the levels of buckets.

use std::time::SystemTime;

use catraca_core::decision::Decision;
use catraca_core::request::{CHECKS_MAX, Check};
use catraca_core::subject::Subject;
use catraca_core::ticket::Ticket;

use super::{App, AppError};
use crate::engine::{BucketObservation, CheckMode, Credit};
use crate::error::Error;
use crate::settlement::{BucketState, CreditResult, Reconciliation};

impl App {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    #[inline]
    pub async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.decide(check, CheckMode::Check).await
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    ///
    /// ```
    /// use catraca::{App, Catalog, Check, Engine};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
    /// let app = App::local(Engine::new(catalog)).build();
    /// let check = Check::new("api", [("ip", "198.51.100.7")]);
    /// app.check(&check).await?;
    /// assert_eq!(app.peek(&check).await?.remaining, Some(8));
    /// assert_eq!(app.peek(&check).await?.remaining, Some(8));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.decide(check, CheckMode::Peek).await
    }

    /// Decides as [`Self::check`] does. The ticket is beside the decision, for
    /// [`Self::settle_unsealed`].
    pub(crate) async fn check_unsealed(
        &self,
        check: &Check<'_>,
    ) -> Result<(Decision, Option<Ticket>), Error> {
        let rules = self.rules();
        let mut exchange = self.engine().unsealed_check_exchange(&rules, check)?;
        let decision = self.run_exchange(&mut exchange).await?;
        Ok((decision, exchange.into_ticket()))
    }

    /// Checks or peeks.
    #[inline]
    pub async fn decide(&self, check: &Check<'_>, mode: CheckMode) -> Result<Decision, Error> {
        let rules = self.rules();
        self.run(self.engine().check_exchange(&rules, check, mode)?).await
    }

    /// Decides a list of checks, one after the other. Each is decided, or fails, on its own.
    pub async fn check_batch(
        &self,
        checks: &[Check<'_>],
    ) -> Result<Vec<Result<Decision, Error>>, AppError> {
        if checks.len() > CHECKS_MAX {
            let sent = checks.len();
            let detail = format!("a batch may have {CHECKS_MAX} checks and this one has {sent}");
            return Err(AppError::invalid("list-too-long", detail));
        }
        let mut decisions = Vec::with_capacity(checks.len());
        for check in checks {
            decisions.push(self.check(check).await);
        }
        Ok(decisions)
    }

    /// Gives units back for a later event, once per reference and event.
    pub async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        let rules = self.rules();
        self.run(self.engine().credit_exchange(&rules, call)?).await
    }

    /// Every bucket that applies to a subject. Buckets that were never charged are full.
    pub async fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        let rules = self.rules();
        self.run(self.engine().buckets_exchange(&rules, namespace, subject)?).await
    }

    /// The bucket of one policy.
    pub async fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        let rules = self.rules();
        self.run(self.engine().bucket_exchange(&rules, namespace, policy, subject)?).await
    }

    /// Corrects buckets to the levels that an upstream reports. A lower level always wins; a higher
    /// one only if the bucket was not written after `observed_at`.
    pub async fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: impl Into<SystemTime>,
        states: &[BucketObservation<'_>],
    ) -> Result<Reconciliation, Error> {
        let observed_at = observed_at.into().into();
        let rules = self.rules();
        let exchange =
            self.engine().reconcile_exchange(&rules, namespace, subject, observed_at, states)?;
        self.run(exchange).await
    }
}
