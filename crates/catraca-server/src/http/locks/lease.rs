//! Leases: acquire, renew, release.
//!
//! A caller that waits keeps its connection, and loses its place when it is gone. Must not hold a
//! place for nobody.

use std::time::Duration;

use axum::http::StatusCode;
use catraca::LockError;
use catraca::core::lock::LeaseId;
use catraca::core::lock::op::Acquire;
use catraca::core::lock::reply::{Acquired, Conflict, Ended, Renewed, State};
use catraca::locks::{Answer, At};
use catraca::{Span, Time};

use super::super::problem::Problem;
use super::super::visit::Phase;
use super::shown::{EndedLease, Extended, Granted, Taken};
use super::wire::{AcquireLock, EndLease, RenewLock};
use super::{Call, Told, later, retry_after, told, told_as, with_lease};

/// How often it is looked whether somebody who waits is still there.
const LOOK: Duration = Duration::from_millis(20);

/// `POST /v1/locks/acquire`.
pub async fn acquire(call: &Call) -> Told {
    let (wire, terms) = (call.wire::<AcquireLock>()?, call.terms());
    let (locks, namespace) = (call.locks(), call.namespace());
    let wait = terms.wait(wire.wait_ms)?;
    let tenant = call.by.tenant(wire.tenant.as_deref())?;
    let mut asked = wire.read(&terms, tenant)?;
    let request = asked.lease.request.as_deref();
    let id = locks.lease_id(namespace, asked.tenant.as_deref(), request)?;
    asked.lease.key = id.key();
    let (answer, now) = match patiently(call, &asked, wait).await {
        Ok(answer) => answer,
        Err(error) => return later(error),
    };
    answered(call, &id, answer, now)
}

/// What became of a wish for names or for a slot.
pub fn answered(call: &Call, id: &LeaseId, answer: Answer, now: Time) -> Told {
    match answer.acquired {
        Acquired::Granted(view) | Acquired::Again(view) => {
            let durability = call.locks().durability(call.terms().durability).as_str();
            let granted = Granted::new(&view, id.reveal(), now, durability);
            Ok(with_lease(told(&granted)?, &view))
        }
        Acquired::Conflict(conflict) => taken(&conflict, answer.waiters, now),
        Acquired::Stale { name, last } => {
            let detail = format!(
                "`version` must be above {last}, the last that was granted for `{}`",
                name.key
            );
            Err(Problem::new(StatusCode::CONFLICT, "stale-version", detail))
        }
        Acquired::Refused(refusal) => Err(refusal.into()),
    }
}

/// Waits as long as somebody is there.
async fn patiently(call: &Call, asked: &Acquire, wait: Span) -> Result<At<Answer>, LockError> {
    let locks = call.locks();
    let durability = call.front.engine.catalog().locks.durability;
    let acquiring = locks.acquire(call.namespace(), asked, wait, durability);
    if wait == Span::ZERO {
        return acquiring.await;
    }
    let _watch = Watch::begin(call);
    let mut acquiring = std::pin::pin!(acquiring);
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            answer = &mut acquiring => return answer,
            _ = looks.tick() => {
                // Nobody is impatient with a connection that waits on purpose.
                call.visit.enter(Phase::Body);
                if call.visit.is_gone() {
                    return Err(LockError::Stopping);
                }
            }
        }
    }
}

/// While it lives, the connection looks whether its other end is gone.
struct Watch<'c>(&'c Call);

impl<'c> Watch<'c> {
    fn begin(call: &'c Call) -> Self {
        call.visit.watch(true);
        Self(call)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.visit.watch(false);
    }
}

/// Somebody else has it.
pub fn taken(conflict: &Conflict, waiters: usize, now: Time) -> Told {
    let answer = told_as(StatusCode::CONFLICT, &Taken::new(conflict, waiters, now))?;
    let answer = with_lease(answer, &conflict.holder);
    Ok(match conflict.free_at.is_forever() {
        true => answer,
        false => retry_after(answer, conflict.free_at.since(now).ceil_secs()),
    })
}

/// `POST /v1/locks/renew`.
pub async fn renew(call: &Call) -> Told {
    let (wire, terms) = (call.wire::<RenewLock>()?, call.terms());
    let (locks, namespace) = (call.locks(), call.namespace());
    let proof = call.proof(&wire.lease_id)?;
    let kind = locks.kind_of(namespace, &proof).await?.unwrap_or_default();
    let ttl = terms.ttl(&kind, wire.ttl_ms)?;
    let (renewed, now) = locks.renew(namespace, &proof, ttl, terms.durability).await?;
    match renewed {
        Renewed::Extended(view) => Ok(with_lease(told(&Extended::new(&view, now))?, &view)),
        Renewed::AtMost(view) => {
            let detail = format!("it was renewed as far as it may be, until {}", view.hold_until);
            Err(Problem::new(StatusCode::CONFLICT, "max-hold-reached", detail))
        }
        Renewed::Over(state) => Err(over(state)),
        Renewed::NotHolder => Err(not_holder()),
    }
}

/// `POST /v1/locks/release`.
pub async fn release(call: &Call) -> Told {
    let wire: EndLease = call.wire()?;
    let proof = call.proof(&wire.lease_id)?;
    let ended = call.locks().release(call.namespace(), &proof).await?;
    ended_as(ended)
}

pub fn ended_as(ended: Ended) -> Told {
    told(&EndedLease { released: ended == Ended::Released, outcome: ended.as_str() })
}

/// A lease that is over.
pub fn over(state: State) -> Problem {
    match state {
        State::Forced => {
            let detail = "an operator ended this lease: stop what you are doing with it";
            Problem::new(StatusCode::CONFLICT, "lease-forced", detail)
        }
        _ => {
            let detail = format!("this lease is over: {}; take it anew", state.as_str());
            Problem::new(StatusCode::GONE, "lease-expired", detail)
        }
    }
}

pub fn not_holder() -> Problem {
    let detail = "this `lease_id` holds nothing here: it is wrong, or was over some time ago";
    Problem::new(StatusCode::CONFLICT, "not-holder", detail)
}
