//! Waits for names that are taken, possibly through another node.
//!
//! A waiter first joins a queue, then asks the store, then sleeps until a freed notice, the expiry
//! of the holder's lease, or its own deadline. So a lost notice delays it at most until the expiry.
//! Nothing is granted after the deadline.

use std::time::Duration;

use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::requests::Acquire;
use catraca_core::lock::terms::WAIT_MAX;
use catraca_core::lock::{LockName, LockOp, NameDigest};
use catraca_core::time::Span;
use tokio::time::{Instant, timeout_at};

use super::wait_queues::QueuePosition;
use super::{SharedLocks, StoreTimed};
use crate::locks::lock_error::LockError;

/// The digest of one of the requested names.
pub(super) fn name_digest(namespace: &str, request: &Acquire, key: &str) -> NameDigest {
    let tenant = request.tenant.clone();
    let kind = request.kind.clone();
    LockName { tenant, kind, key: key.into() }.digest(namespace)
}

impl SharedLocks {
    /// Tries to acquire names until it succeeds or the deadline passes.
    pub(super) async fn acquire_waiting(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: Span,
    ) -> Result<StoreTimed<AcquireReply>, LockError> {
        let deadline = Instant::now() + duration(wait.min(WAIT_MAX));
        // A repeated request may have been granted before: it must not queue behind its own lease.
        if request.lease.request.is_some() {
            let first = self.attempt(namespace, request, false).await?;
            if !matches!(first.0, AcquireReply::Conflict(_)) {
                return self.finish_attempt(namespace, request, first).await;
            }
        }
        let tenant = NameDigest::of_tenant(namespace, request.tenant.as_deref());
        let mut position = self.queues.join(self.first_queue(namespace, request), tenant)?;
        loop {
            if position.is_first() && Instant::now() < deadline {
                let (acquired, now) = self.attempt(namespace, request, false).await?;
                let AcquireReply::Conflict(conflict) = acquired else {
                    return self.finish_attempt(namespace, request, (acquired, now)).await;
                };
                let conflicting = name_digest(namespace, request, &conflict.taken);
                // Of several names another one is taken now: wait in its queue.
                if conflicting != position.name() {
                    position = self.queues.join(conflicting, tenant)?;
                    continue;
                }
                let free = Instant::now() + duration(conflict.free_at.since(now));
                position.store_conflict(&(conflict, now));
                self.pause(&position, free.min(deadline)).await?;
            } else {
                self.pause(&position, deadline).await?;
            }
            if Instant::now() >= deadline {
                return self.give_up(namespace, request, position).await;
            }
        }
    }

    /// Sleeps until a wake-up or `until`. Fails if waiting is no longer allowed.
    async fn pause(&self, position: &QueuePosition, until: Instant) -> Result<(), LockError> {
        self.queues.check_open()?;
        // Timeout or wake-up: both mean to check again.
        let _ = timeout_at(until, position.wake_up()).await;
        self.queues.check_open()
    }

    /// The first requested name that has a queue, else the first name.
    fn first_queue(&self, namespace: &str, request: &Acquire) -> NameDigest {
        let names = || request.keys.iter().map(|key| name_digest(namespace, request, key));
        let busy = names().find(|name| self.queues.len(*name) > 0);
        busy.or_else(|| names().next()).unwrap_or(NameDigest([0; 16]))
    }

    /// Ends an attempt without a conflict; a stale version is counted as one.
    async fn finish_attempt(
        &self,
        namespace: &str,
        request: &Acquire,
        (acquired, now): StoreTimed<AcquireReply>,
    ) -> Result<StoreTimed<AcquireReply>, LockError> {
        if matches!(acquired, AcquireReply::Stale { .. }) {
            self.ask(namespace, &count_conflict(request)).await?;
        }
        Ok((acquired, now))
    }

    /// The deadline has passed: counts a conflict and answers with the latest one.
    async fn give_up(
        &self,
        namespace: &str,
        request: &Acquire,
        position: QueuePosition,
    ) -> Result<StoreTimed<AcquireReply>, LockError> {
        let Some((conflict, _)) = position.last_conflict() else {
            let why = "the store did not answer within the wait time".to_owned();
            return Err(LockError::StoreUnavailable { why });
        };
        drop(position);
        let now = self.ask(namespace, &count_conflict(request)).await?.now;
        Ok((AcquireReply::Conflict(conflict), now))
    }
}

/// The operation that counts a conflict.
fn count_conflict(request: &Acquire) -> LockOp {
    LockOp::CountConflict { tenant: request.tenant.clone(), kind: request.kind.clone() }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros().max(0).unsigned_abs())
}
