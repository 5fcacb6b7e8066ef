//! The calls of the engine, sent to the local engine or to the one over the shared store.
//!
//! The calls of the admin API run on threads for blocking work, so theirs are not async. Both
//! engines have the same rules; none is here.

use catraca::core::digest::Key;
use catraca::records::BlockRow;
use catraca::settlement::{BlockedKey, BucketState, CreditResult, Drift, Settlement};
use catraca::{BlockOrder, BucketObservation, Check, Decision, Error, Settle, Subject, Time};
use tokio::runtime::Handle;
use tracing::{Level, enabled};

use super::{ServerContext, debug_log};

/// Whether a check charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Decides and charges.
    Check,
    /// Decides and changes nothing.
    Peek,
}

impl ServerContext {
    /// Decides a check.
    #[inline]
    pub async fn decide(&self, check: &Check<'_>, mode: CheckMode) -> Result<Decision, Error> {
        let decision = match (&self.shared, mode) {
            (None, CheckMode::Check) => self.engine.check(check),
            (None, CheckMode::Peek) => self.engine.peek(check),
            (Some(shared), CheckMode::Check) => shared.check(check).await,
            (Some(shared), CheckMode::Peek) => shared.peek(check).await,
        };
        // One load of an atomic while the level is INFO.
        if enabled!(Level::DEBUG) {
            debug_log::log_decision(self, check, &decision);
        }
        decision
    }

    /// Applies the outcome of a check.
    pub async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        match &self.shared {
            None => self.engine.settle(call),
            Some(shared) => shared.settle(call).await,
        }
    }

    /// Credits a check for a late event.
    pub async fn credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<CreditResult, Error> {
        match &self.shared {
            None => self.engine.credit(namespace, reference, event, subject),
            Some(shared) => shared.credit(namespace, reference, event, subject).await,
        }
    }

    /// The states of all buckets that apply to a subject.
    pub async fn buckets(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BucketState>, Error> {
        match &self.shared {
            None => self.engine.buckets(namespace, subject),
            Some(shared) => shared.buckets(namespace, subject).await,
        }
    }

    /// The state of one bucket.
    pub async fn bucket_state(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<BucketState, Error> {
        match &self.shared {
            None => self.engine.bucket_state(namespace, policy, subject),
            Some(shared) => shared.bucket_state(namespace, policy, subject).await,
        }
    }

    /// Corrects buckets to what an upstream observed. Blocks the thread.
    pub fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[BucketObservation<'_>],
    ) -> Result<Vec<Drift>, Error> {
        match &self.shared {
            None => self.engine.reconcile(namespace, subject, observed_at, states),
            Some(shared) => wait(shared.reconcile(namespace, subject, observed_at, states)),
        }
    }

    /// Blocks a subject. Blocks the thread.
    pub fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        match &self.shared {
            None => self.engine.block(order),
            Some(shared) => wait(shared.block(order)),
        }
    }

    /// Ends one block. Blocks the thread.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        match &self.shared {
            None => self.engine.release(block),
            Some(shared) => wait(shared.release(block)),
        }
    }

    /// Resets all state of a key. Blocks the thread.
    pub fn reset(&self, namespace: &str, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        match &self.shared {
            None => self.engine.reset(namespace, policy, subject),
            Some(shared) => wait(shared.reset(namespace, policy, subject)),
        }
    }

    /// Frees the memory of blocks from before a whole reset, which no longer count. Blocks the
    /// thread.
    pub fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        match &self.shared {
            None => self.engine.sweep(keys),
            Some(shared) => wait(shared.sweep(keys)),
        }
    }

    /// Publishes that lists, facts or modes have changed, so that other nodes read the records
    /// again. Blocks the thread.
    pub fn publish_change(&self) {
        if let Some(shared) = &self.shared {
            wait(shared.publish_change());
        }
    }
}

/// Only on threads for blocking work: on an async worker this panics.
fn wait<T>(future: impl Future<Output = T>) -> T {
    Handle::current().block_on(future)
}
