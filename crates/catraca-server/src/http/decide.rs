//! Where a verb goes: to the engine in this process, or to the one that decides with other nodes.
//!
//! The desk's calls run on threads that may wait, so theirs are plain. Must not hold a rule: both
//! engines have the same ones.

use catraca::core::digest::Key;
use catraca::records::BlockRow;
use catraca::settlement::{BlockedKey, BucketState, Credited, Drift, Settlement};
use catraca::{BlockOrder, Check, Decision, Error, Observed, Settle, Subject, Time};
use tokio::runtime::Handle;
use tracing::{Level, enabled};

use super::{Front, debug};

/// How a check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// For real.
    Check,
    /// Only looked at.
    Peek,
}

impl Front {
    /// May this caller pass?
    #[inline]
    pub async fn decide(&self, check: &Check<'_>, verb: Verb) -> Result<Decision, Error> {
        let decided = match (&self.shared, verb) {
            (None, Verb::Check) => self.engine.check(check),
            (None, Verb::Peek) => self.engine.peek(check),
            (Some(shared), Verb::Check) => shared.check(check).await,
            (Some(shared), Verb::Peek) => shared.peek(check).await,
        };
        if enabled!(Level::DEBUG) {
            debug::decided(self, check, &decided);
        }
        decided
    }

    /// Applies an outcome.
    pub async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        match &self.shared {
            None => self.engine.settle(call),
            Some(shared) => shared.settle(call).await,
        }
    }

    /// Gives back for a late event.
    pub async fn credit(
        &self,
        namespace: &str,
        (reference, event): (&str, &str),
        subject: &Subject<'_>,
    ) -> Result<Credited, Error> {
        match &self.shared {
            None => self.engine.credit(namespace, reference, event, subject),
            Some(shared) => shared.credit(namespace, reference, event, subject).await,
        }
    }

    /// Every bucket that applies to a subject.
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

    /// One bucket.
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

    /// Takes an upstream's view of buckets. On a thread that may wait.
    pub fn reconcile(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
        observed_at: Time,
        states: &[Observed<'_>],
    ) -> Result<Vec<Drift>, Error> {
        match &self.shared {
            None => self.engine.reconcile(namespace, subject, observed_at, states),
            Some(shared) => wait(shared.reconcile(namespace, subject, observed_at, states)),
        }
    }

    /// Blocks a subject. On a thread that may wait.
    pub fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        match &self.shared {
            None => self.engine.block(order),
            Some(shared) => wait(shared.block(order)),
        }
    }

    /// Ends one block. On a thread that may wait.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        match &self.shared {
            None => self.engine.release(block),
            Some(shared) => wait(shared.release(block)),
        }
    }

    /// Forgets everything of a key. On a thread that may wait.
    pub fn reset(&self, namespace: &str, policy: &str, subject: &Subject<'_>) -> Result<(), Error> {
        match &self.shared {
            None => self.engine.reset(namespace, policy, subject),
            Some(shared) => wait(shared.reset(namespace, policy, subject)),
        }
    }

    /// Gives back the room of blocks from before a whole reset. On a thread that may wait.
    pub fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        match &self.shared {
            None => self.engine.sweep(keys),
            Some(shared) => wait(shared.sweep(keys)),
        }
    }

    /// Tells other nodes that lists, facts or modes have changed. On a thread that may wait.
    pub fn stir(&self) {
        if let Some(shared) = &self.shared {
            wait(shared.stir());
        }
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    Handle::current().block_on(future)
}
