//! Waiting for names that another holds, perhaps through another node.
//!
//! A place in a queue comes first, then a look, then sleep: until the name is told to be free, the
//! holder's time is over, or one's own is. So no message can be lost: the instants alone would wake
//! the first in a queue. Must not grant anything to who has no time left.

use std::time::Duration;

use catraca_core::lock::op::Acquire;
use catraca_core::lock::reply::Acquired;
use catraca_core::lock::terms::WAIT_MAX;
use catraca_core::lock::{LockName, LockOp, Mark};
use catraca_core::time::Span;
use tokio::time::{Instant, timeout_at};

use super::queue::Place;
use super::{At, SharedLocks};
use crate::locks::error::LockError;

/// The mark of one of the names that are asked for.
pub(super) fn mark(namespace: &str, asked: &Acquire, key: &str) -> Mark {
    let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
    LockName { tenant, kind, key: key.into() }.mark(namespace)
}

impl SharedLocks {
    /// Tries to take names until it has them or the time is over.
    pub(super) async fn patiently(
        &self,
        namespace: &str,
        asked: &Acquire,
        wait: Span,
    ) -> Result<At<Acquired>, LockError> {
        let deadline = Instant::now() + duration(wait.min(WAIT_MAX));
        // One that was granted before need not wait for itself.
        if asked.lease.request.is_some() {
            let first = self.attempt(namespace, asked, false).await?;
            if !matches!(first.0, Acquired::Conflict(_)) {
                return self.counted(namespace, asked, first).await;
            }
        }
        let tenant = Mark::of_tenant(namespace, asked.tenant.as_deref());
        let mut place = self.queues.join(self.first_queue(namespace, asked), tenant)?;
        loop {
            if place.is_first() && Instant::now() < deadline {
                let (acquired, now) = self.attempt(namespace, asked, false).await?;
                let Acquired::Conflict(conflict) = acquired else {
                    return self.counted(namespace, asked, (acquired, now)).await;
                };
                let there = mark(namespace, asked, &conflict.taken);
                if there != place.mark() {
                    place = self.queues.join(there, tenant)?;
                    continue;
                }
                let free = Instant::now() + duration(conflict.free_at.since(now));
                place.met(&(conflict, now));
                self.pause(&place, free.min(deadline)).await?;
            } else {
                self.pause(&place, deadline).await?;
            }
            if Instant::now() >= deadline {
                return self.missed(namespace, asked, place).await;
            }
        }
    }

    /// Sleeps until there may be something to do, unless nobody may wait any more.
    async fn pause(&self, place: &Place, until: Instant) -> Result<(), LockError> {
        self.queues.open()?;
        // Whichever comes first.
        let _ = timeout_at(until, place.woken()).await;
        self.queues.open()
    }

    /// The queue that somebody is in already, else that of the first name.
    fn first_queue(&self, namespace: &str, asked: &Acquire) -> Mark {
        let marks = || asked.keys.iter().map(|key| mark(namespace, asked, key));
        let busy = marks().find(|mark| self.queues.len(*mark) > 0);
        busy.or_else(|| marks().next()).unwrap_or(Mark([0; 16]))
    }

    /// An attempt that found nobody in the way: one that was too old counts as a conflict.
    async fn counted(
        &self,
        namespace: &str,
        asked: &Acquire,
        (acquired, now): At<Acquired>,
    ) -> Result<At<Acquired>, LockError> {
        if matches!(acquired, Acquired::Stale { .. }) {
            self.ask(namespace, &miss(asked)).await?;
        }
        Ok((acquired, now))
    }

    /// The time is over: the attempt counts as a conflict, with whoever was last in the way.
    async fn missed(
        &self,
        namespace: &str,
        asked: &Acquire,
        place: Place,
    ) -> Result<At<Acquired>, LockError> {
        let Some((conflict, _)) = place.last_met() else {
            let why = "no answer came within the time that you would wait".to_owned();
            return Err(LockError::Away { why });
        };
        drop(place);
        let now = self.ask(namespace, &miss(asked)).await?.now;
        Ok((Acquired::Conflict(conflict), now))
    }
}

fn miss(asked: &Acquire) -> LockOp {
    LockOp::Miss { tenant: asked.tenant.clone(), kind: asked.kind.clone() }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros().max(0).unsigned_abs())
}
