//! The application: joins engine, locks, records and other nodes, with one method per operation
//! that a front end may offer.
//!
//! Front ends (HTTP, a proxy, a command line) translate between their protocol and these methods,
//! and contain no rule. What follows from an operation happens here: events reach records and
//! listener, acts are audited and survive a crash once they are acknowledged, the engine and
//! the records change in the same order, and other nodes are notified.
//!
//! An operator's act runs to its end even if its caller disconnects: it must not be applied and
//! then be neither recorded nor published.

mod app_error;
#[cfg(feature = "records")]
mod attribute_names;
#[cfg(feature = "records")]
mod blocks;
mod builder;
mod decisions;
#[cfg(feature = "records")]
mod facts;
#[cfg(feature = "records")]
mod filters;
#[cfg(feature = "records")]
mod inspect;
#[cfg(feature = "records")]
mod lists;
#[cfg(all(feature = "records", feature = "locks"))]
mod lock_acts;
#[cfg(feature = "records")]
mod modes;
#[cfg(feature = "records")]
mod namespaces;
mod nodes;
#[cfg(feature = "records")]
mod operator;
#[cfg(feature = "records")]
mod orphans;
#[cfg(feature = "records")]
mod page_size;
#[cfg(feature = "records")]
mod privacy;
#[cfg(feature = "records")]
mod release;
#[cfg(feature = "records")]
mod reload;
#[cfg(feature = "records")]
mod reports;
#[cfg(feature = "records")]
mod reset;
mod settle;
#[cfg(feature = "records")]
mod shown_rows;
mod unaudited;

use std::sync::Arc;

use catraca_core::catalog::Catalog;
use catraca_core::time::Time;
use tokio::sync::Semaphore;

use crate::engine::{Engine, Events, Exchange};
use crate::error::Error;
use crate::event::Event;
#[cfg(feature = "locks")]
use crate::locks::Locks;
#[cfg(feature = "records")]
use crate::records::Records;
use crate::rule_set::RuleSet;
use crate::shared::SharedDriver;

pub use app_error::AppError;
#[cfg(feature = "records")]
pub use blocks::{BlockWithHistory, CreatedBlocks, ListedBlock};
pub use builder::AppBuilder;
pub use catraca_core::request::CHECKS_MAX;
#[cfg(feature = "records")]
pub use facts::{ChangedFacts, FACTS_MAX, FactMap, NAMESPACE_FACTS_MAX};
#[cfg(feature = "records")]
pub use inspect::{
    EntrySource, INSPECTED_BLOCKS_MAX, INSPECTED_ENDED_MAX, InspectedEntry, InspectedPolicy,
    InspectedTier, Inspection,
};
#[cfg(feature = "records")]
pub use lists::{
    AddedEntries, ENTRIES_MAX, ListTargetText, NAMESPACE_ENTRIES_MAX, NewListEntry, RemovedEntry,
};
#[cfg(feature = "records")]
pub use modes::ChangedMode;
#[cfg(feature = "records")]
pub use operator::TEXT_MAX;
#[cfg(feature = "records")]
pub use orphans::OrphanedBlocks;
#[cfg(feature = "records")]
pub use page_size::check_page_size;
#[cfg(feature = "records")]
pub use privacy::{ErasedSubject, ExportedSubject};
#[cfg(feature = "records")]
pub use release::ReleasedBlock;
#[cfg(feature = "records")]
pub use reload::{CatalogChange, ReloadedCatalog};
#[cfg(feature = "records")]
pub use reports::PeriodTotals;
#[cfg(feature = "records")]
pub use reset::{KeyResetResult, PolicyResetResult};
pub use settle::{SettleAnswer, offloaded_max};

/// What every front end has. Cheap to clone: all parts are shared.
///
/// ```
/// use catraca::{App, Catalog, Check, Engine};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1h'")?;
/// let app = App::local(Engine::new(catalog)).build();
/// let handler = app.clone(); // the same counters
/// let check = Check::new("login", [("ip", "198.51.100.7")]);
/// assert!(handler.check(&check).await?.allowed);
/// assert!(!app.peek(&check).await?.allowed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct App {
    parts: Arc<AppParts>,
}

struct AppParts {
    /// The rules, and the store of this process. With a shared store it is the local fallback.
    engine: Arc<Engine>,
    /// Drives operations over a shared store, if there is one.
    shared: Option<Arc<SharedDriver>>,
    #[cfg(feature = "records")]
    records: Option<Arc<Records>>,
    #[cfg(feature = "locks")]
    locks: Arc<Locks>,
    /// Held while lists, facts or modes change, so that two changes of one entry are recorded in
    /// the order in which they took effect.
    #[cfg(feature = "records")]
    change_lock: tokio::sync::Mutex<()>,
    /// The namespaces of the records when they were last read; absent before that.
    #[cfg(feature = "records")]
    recorded_namespaces: parking_lot::Mutex<Option<std::collections::BTreeSet<String>>>,
    /// How many rows the records had acknowledged when that was last read.
    #[cfg(feature = "records")]
    last_sequence: std::sync::atomic::AtomicU64,
    /// When the catalog was applied.
    #[cfg(feature = "records")]
    catalog_since: parking_lot::Mutex<Time>,
    /// Permits for settles that run off the async workers.
    offload_permits: Arc<Semaphore>,
}

impl App {
    /// The catalog in use.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine().catalog()
    }

    /// The current instant, by the clock of this process.
    #[doc(hidden)]
    pub fn now(&self) -> Time {
        self.engine().now()
    }

    /// The engine of this process, for its rules, figures and explanations. Operations on it
    /// directly are not recorded, and do not use the shared store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.parts.engine
    }

    /// The records, if there are any, for their health and their maintenance.
    #[cfg(feature = "records")]
    pub fn records(&self) -> Option<&Arc<Records>> {
        self.parts.records.as_ref()
    }

    /// Locks and slots. Operators' acts on them are methods of the application, which audits them.
    #[cfg(feature = "locks")]
    pub fn locks(&self) -> &Arc<Locks> {
        &self.parts.locks
    }

    /// The rules, for one operation.
    fn rules(&self) -> Arc<RuleSet> {
        self.engine().rules_snapshot()
    }

    /// Runs an operation and reports its events. No caller waits for their records.
    #[inline]
    async fn run<X: Exchange>(&self, mut exchange: X) -> Result<X::Answer, Error> {
        self.run_exchange(&mut exchange).await
    }

    /// Like [`Self::run`], for an exchange that has more than its answer.
    async fn run_exchange<X: Exchange>(&self, exchange: &mut X) -> Result<X::Answer, Error> {
        let (answer, events) = self.drive(exchange).await;
        for event in events.iter() {
            self.record_later(event);
            self.engine().emit(event);
        }
        let answer = answer?;
        self.report_summary(exchange, &answer);
        Ok(answer)
    }

    /// Reports the event that describes an answer.
    fn report_summary<X: Exchange>(&self, exchange: &X, answer: &X::Answer) {
        if let Some(event) = exchange.summary(answer) {
            self.record_later(&event);
            self.engine().emit(&event);
        }
    }

    /// Carries batches to the store of this process or to the shared one. This is the only place
    /// where an operation depends on which of them is in use.
    #[inline]
    async fn drive<X: Exchange>(&self, exchange: &mut X) -> (Result<X::Answer, Error>, Events) {
        let mut events = Events::new(true);
        let answer = match &self.parts.shared {
            None => self.engine().drive(exchange, &mut events),
            Some(shared) => shared.drive(exchange, &mut events).await,
        };
        (answer, events)
    }

    /// Queues the record of an event, and the notice of it for other nodes.
    fn record_later(&self, event: &Event<'_>) {
        self.notify_nodes(event);
        #[cfg(feature = "records")]
        if let Some(records) = &self.parts.records {
            records.on_event(event);
        }
        #[cfg(not(feature = "records"))]
        let _ = event;
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("engine", self.engine()).finish_non_exhaustive()
    }
}
