//! Settle: a block or a debt that it causes is on disk before the answer.
//!
//! The acknowledgement of the records is awaited, so that no async worker blocks on the disk. A
//! settle whose ban rules may take more than about a millisecond runs on a thread for blocking
//! work, so that checks on the same worker do not wait for it.

use std::sync::Arc;

use catraca_core::catalog::Catalog;
use catraca_core::limit::Limit;
use catraca_core::outcome::{BodySize, Outcome};
use catraca_core::subject::Subject;
use catraca_core::ticket::Ticket;
use tokio::runtime::Handle;

#[cfg(feature = "records")]
use super::operator::ActReceipt;
use super::{App, AppError};
use crate::engine::{CheckRef, Exchange, Settle, matches_head_ban};
use crate::settlement::{SettleState, SettledRow, Settlement};

/// Settles of at least this estimated cost run off the async workers: about a millisecond.
const OFFLOAD_WORK: u64 = 1_000_000;

/// The answer to a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleAnswer {
    /// What the settle did.
    pub settlement: Settlement,
    /// Whether its blocks and debts are on disk. Absent if it has none: counters may lose what was
    /// counted since the last snapshot, so nothing is promised about them.
    pub durable: Option<bool>,
}

/// How many settles run off the async workers at once: half of the cores, so that the workers keep
/// the other half.
pub fn offloaded_max() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

impl App {
    /// Applies the outcome of an admitted check, once. A second settle returns the first result.
    ///
    /// ```
    /// # #[cfg(not(feature = "settle"))] fn main() {}
    /// # #[cfg(feature = "settle")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use catraca::{App, Catalog, Check, Engine, Outcome, Settle};
    ///
    /// let limit = "[policy.api]\n by = ['ip']\n window = '9 per 1m'";
    /// let catalog = Catalog::parse(&format!("{limit}\n cost = {{ '404' = 5, default = 0 }}"))?;
    /// let app = App::local(Engine::new(catalog)).build();
    /// let decision = app.check(&Check::new("api", [("ip", "198.51.100.7")])).await?;
    /// let ticket = decision.ticket.expect("the cost depends on the outcome");
    /// let answer = app.settle(&Settle::ticket(&ticket, &Outcome::status(404))).await?;
    /// assert_eq!(answer.settlement.rows[0].charged, 5);
    /// assert_eq!(answer.durable, None); // it started no block
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settle(&self, call: &Settle<'_>) -> Result<SettleAnswer, AppError> {
        if self.estimated_work(call.outcome) < OFFLOAD_WORK {
            return self.settle_here(call).await;
        }
        self.settle_offloaded(OwnedSettle::from(call)).await
    }

    /// Settles as [`Self::settle`] does, with the ticket of [`Self::check_unsealed`].
    pub(crate) async fn settle_unsealed(
        &self,
        namespace: &str,
        ticket: Ticket,
        outcome: &Outcome,
    ) -> Result<SettleAnswer, AppError> {
        if self.estimated_work(outcome) >= OFFLOAD_WORK {
            let ticket = self.engine().seal_ticket(&ticket, namespace);
            let check = CheckRef::Ticket(&ticket);
            return self.settle(&Settle { namespace, check, outcome }).await;
        }
        let rules = self.rules();
        let engine = self.engine();
        let exchange = engine.unsealed_settle_exchange(&rules, namespace, ticket, outcome)?;
        self.apply_settle(&rules.catalog, exchange).await
    }

    /// Whether a ban may replace the response that has this head, by a rule that does not read the
    /// body. The outcome has what the head says; nothing is settled. A rule with `after` may need
    /// more outcomes than this one.
    ///
    /// ```
    /// # #[cfg(not(feature = "cel"))] fn main() {}
    /// # #[cfg(feature = "cel")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use catraca::{App, Catalog, Check, Engine, Outcome, Settle};
    ///
    /// let catalog = Catalog::parse(r#"
    ///     [policy.login]
    ///     by     = ["ip"]
    ///     window = "100 per 1m"
    ///     ban    = [{ when = "status == 401", for = "10m", status = 400 }]
    /// "#)?;
    /// let app = App::local(Engine::new(catalog)).build();
    /// let decision = app.check(&Check::new("login", [("ip", "198.51.100.7")])).await?;
    /// let ticket = decision.ticket.expect("an outcome may start a ban");
    /// assert!(!app.may_replace_by_head(&Settle::ticket(&ticket, &Outcome::status(200))));
    /// assert!(app.may_replace_by_head(&Settle::ticket(&ticket, &Outcome::status(401))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn may_replace_by_head(&self, head: &Settle<'_>) -> bool {
        // Rules that take so long are evaluated once, off the async workers.
        self.estimated_work(head.outcome) >= OFFLOAD_WORK
            || matches_head_ban(self.engine(), head).unwrap_or(true)
    }

    /// The estimated work of the ban rules.
    fn estimated_work(&self, outcome: &Outcome) -> u64 {
        let catalog = self.catalog();
        let body_bytes = match outcome.body_size {
            BodySize::Bytes(bytes) => bytes,
            // No rule gets a body that is over the limit.
            BodySize::OverLimit => 0,
            // Measured later, and never more than the limit.
            BodySize::Unmeasured if !outcome.has_body() => 0,
            BodySize::Unmeasured => catalog.settle.body_bytes_max,
        };
        catalog.rule_cost.estimate(body_bytes)
    }

    async fn settle_here(&self, call: &Settle<'_>) -> Result<SettleAnswer, AppError> {
        let rules = self.rules();
        let exchange = self.engine().settle_exchange(&rules, call)?;
        self.apply_settle(&rules.catalog, exchange).await
    }

    async fn apply_settle(
        &self,
        catalog: &Catalog,
        mut exchange: impl Exchange<Answer = Settlement>,
    ) -> Result<SettleAnswer, AppError> {
        let (settlement, events) = self.drive(&mut exchange).await;
        #[cfg(feature = "records")]
        let is_local = events.is_local();
        let events = events.into_vec();
        #[cfg(feature = "records")]
        let receipt = self
            .parts
            .records
            .as_ref()
            .map(|records| ActReceipt { records: records.record_events(None, &events), is_local });
        for event in &events {
            self.notify_nodes(event);
            self.engine().emit(event);
        }
        let settlement = settlement?;
        self.report_summary(&exchange, &settlement);
        let must_be_durable = must_be_durable(catalog, &settlement);
        #[cfg(feature = "records")]
        let durable = match receipt {
            _ if !must_be_durable => None,
            Some(receipt) => {
                let (_, durable) = self.confirm_act(receipt).await;
                Some(durable)
            }
            None => Some(false),
        };
        #[cfg(not(feature = "records"))]
        let durable = must_be_durable.then_some(false);
        Ok(SettleAnswer { settlement, durable })
    }

    /// Settles on a thread for blocking work. A call that is cancelled while it waits for its
    /// permit is not applied; one that has started is applied even if the client is gone.
    async fn settle_offloaded(&self, call: OwnedSettle) -> Result<SettleAnswer, AppError> {
        let permit = Arc::clone(&self.parts.offload_permits).acquire_owned().await;
        let permit = permit.map_err(|error| AppError::Interrupted { why: error.to_string() })?;
        let runtime = Handle::current();
        let app = self.clone();
        let work = move || {
            // Held until the work is done.
            let _permit = permit;
            runtime.block_on(app.settle_here(&call.borrow()))
        };
        tokio::task::spawn_blocking(work).await?
    }
}

/// Whether a settle left a bucket in debt or started a block; a repeated settle was already
/// acknowledged the first time. A window below zero is only a counter: it is as full as it can be,
/// and ends with the window.
fn must_be_durable(catalog: &Catalog, settlement: &Settlement) -> bool {
    let in_debt = |row: &SettledRow| {
        let policy = catalog.find(&row.policy).map(|(_, policy)| policy);
        let tiers = policy.iter().flat_map(|policy| policy.tiers.iter().map(|tier| &tier.terms));
        let mut terms = policy.iter().flat_map(|policy| &policy.base).chain(tiers);
        row.balance.is_some_and(|balance| balance < 0)
            && terms.any(|terms| matches!(terms.limit, Limit::Bucket(_)))
    };
    let mut rows = settlement.rows.iter();
    settlement.state == SettleState::Applied
        && rows.any(|row| in_debt(row) || row.blocked_by.is_some())
}

/// A settle that can move to another thread.
struct OwnedSettle {
    namespace: String,
    check: OwnedCheckRef,
    outcome: Outcome,
}

enum OwnedCheckRef {
    Ticket(String),
    Reference(String, Vec<(String, String)>),
}

impl From<&Settle<'_>> for OwnedSettle {
    fn from(call: &Settle<'_>) -> Self {
        let check = match &call.check {
            CheckRef::Ticket(ticket) => OwnedCheckRef::Ticket((*ticket).to_owned()),
            CheckRef::Reference(name, subject) => {
                OwnedCheckRef::Reference((*name).to_owned(), subject.to_owned_pairs())
            }
        };
        Self { namespace: call.namespace.to_owned(), check, outcome: call.outcome.clone() }
    }
}

impl OwnedSettle {
    fn borrow(&self) -> Settle<'_> {
        let check = match &self.check {
            OwnedCheckRef::Ticket(ticket) => CheckRef::Ticket(ticket),
            OwnedCheckRef::Reference(name, pairs) => {
                CheckRef::Reference(name, Subject::from_owned_pairs(pairs))
            }
        };
        Settle { namespace: &self.namespace, check, outcome: &self.outcome }
    }
}
