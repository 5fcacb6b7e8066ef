//! Leases: acquire, renew and release.
//!
//! A client that waits for a lock leaves the queue when its connection closes; otherwise a lease
//! could be granted to a client that is gone.

use std::time::Duration;

use catraca::LockError;
use catraca::core::lock::LeaseId;
use catraca::core::lock::reply::{AcquireReply, Conflict, LeaseState, ReleaseReply, RenewReply};
use catraca::core::lock::requests::Acquire;
use catraca::json::{EndedLease, GrantedLease, LockConflict, RenewedLease};
use catraca::locks::LockAttempt;
use catraca::{Span, Time};
use hyper::http::StatusCode;

use super::{
    ApiRequest, ApiResult, respond_json, respond_json_with_status, retry_after, with_lease_headers,
};
use crate::http::bodies::lock_requests::{AcquireLock, EndLease, RenewLock, duration};
use crate::http::bodies::problem::Problem;
use crate::listener::Phase;

/// How often the connection of a waiting client is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// `POST /v1/locks/acquire`.
pub async fn acquire(request: &ApiRequest) -> ApiResult {
    let body: AcquireLock = request.json_body()?;
    let terms = request.terms();
    let locks = request.locks();
    let namespace = request.namespace();
    let wait = terms.wait(body.wait_ms)?;
    let tenant = request.caller.allowed_tenant(body.tenant.as_deref())?;
    let mut operation = body.into_operation(&terms, tenant)?;
    let request_id = operation.lease.request.as_deref();
    // Derived from the request id if there is one, so that a repeated request finds its lease.
    let id = locks.lease_id(namespace, operation.tenant.as_deref(), request_id)?;
    operation.lease.key = id.key();
    match acquire_while_connected(request, &operation, wait).await {
        Ok(attempt) => acquire_response(&id, attempt),
        Err(error) => Err(error.into()),
    }
}

/// The response to an acquire or a hold.
pub fn acquire_response(id: &LeaseId, attempt: LockAttempt) -> ApiResult {
    let now = attempt.now;
    match attempt.acquired {
        // `Again` is a repeated request with the same `request_id`: it gets the same lease.
        AcquireReply::Granted(lease) | AcquireReply::Again(lease) => {
            let durability = attempt.durability.as_str();
            let granted = GrantedLease::new(&lease, id.reveal(), now, durability);
            Ok(with_lease_headers(respond_json(&granted)?, &lease))
        }
        AcquireReply::Conflict(conflict) => conflict_response(&conflict, attempt.waiters, now),
        AcquireReply::Stale { name, last } => {
            let detail = format!(
                "`version` must be above {last}, the last version that was granted for `{}`",
                name.key
            );
            Err(Problem::new(StatusCode::CONFLICT, "stale-version", detail))
        }
        AcquireReply::Refused(refusal) => Err(refusal.into()),
    }
}

/// Acquires, waiting up to `wait`; gives up when the client disconnects.
async fn acquire_while_connected(
    request: &ApiRequest,
    operation: &Acquire,
    wait: Span,
) -> Result<LockAttempt, LockError> {
    let acquiring = request.locks().acquire(request.namespace(), operation, wait);
    if wait == Span::ZERO {
        return acquiring.await;
    }
    let _watch = DisconnectWatch::begin(request);
    let mut acquiring = std::pin::pin!(acquiring);
    let mut probes = tokio::time::interval(PROBE_INTERVAL);
    loop {
        tokio::select! {
            // Polls the acquire first: a grant is delivered even if a probe is due.
            biased;
            attempt = &mut acquiring => return attempt,
            _ = probes.tick() => {
                // Restarts the timeout of the connection: this request waits on purpose.
                request.connection().enter(Phase::Handler);
                if request.connection().has_peer_closed() {
                    // Dropping `acquiring` leaves the queue. No client receives this error.
                    return Err(LockError::Stopping);
                }
            }
        }
    }
}

/// While this exists, the connection checks whether the client has disconnected.
struct DisconnectWatch<'c>(&'c ApiRequest);

impl<'c> DisconnectWatch<'c> {
    fn begin(request: &'c ApiRequest) -> Self {
        request.connection().watch_peer(true);
        Self(request)
    }
}

impl Drop for DisconnectWatch<'_> {
    fn drop(&mut self) {
        self.0.connection().watch_peer(false);
    }
}

/// 409 with the holder; `Retry-After` is when its lease ends, absent for a confirmed slot.
pub fn conflict_response(conflict: &Conflict, waiters: usize, now: Time) -> ApiResult {
    let body = LockConflict::new(conflict, waiters, now);
    let response = respond_json_with_status(StatusCode::CONFLICT, &body)?;
    let response = with_lease_headers(response, &conflict.holder);
    Ok(match conflict.free_at.is_forever() {
        true => response,
        false => retry_after(response, conflict.free_at.since(now).ceil_secs()),
    })
}

/// `POST /v1/locks/renew`.
pub async fn renew(request: &ApiRequest) -> ApiResult {
    let body: RenewLock = request.json_body()?;
    let terms = request.terms();
    let proof = request.proof(&body.lease_id)?;
    let namespace = request.namespace();
    let ttl = duration("ttl_ms", body.ttl_ms)?;
    let renewal = request.locks().renew(namespace, &proof, ttl, &terms).await?;
    match renewal.reply {
        RenewReply::Extended(lease) => {
            let body = RenewedLease::new(&lease, renewal.now);
            Ok(with_lease_headers(respond_json(&body)?, &lease))
        }
        RenewReply::AtMost(lease) => {
            let detail = format!(
                "the lease cannot be renewed past {}; release it and acquire again",
                lease.hold_until
            );
            Err(Problem::new(StatusCode::CONFLICT, "max-hold-reached", detail))
        }
        RenewReply::Over(state) => Err(ended_lease(state)),
        RenewReply::NotHolder => Err(not_holder()),
    }
}

/// `POST /v1/locks/release`.
pub async fn release(request: &ApiRequest) -> ApiResult {
    let body: EndLease = request.json_body()?;
    let proof = request.proof(&body.lease_id)?;
    let reply = request.locks().release(request.namespace(), &proof).await?;
    release_response(reply)
}

/// 200 also if the lease had ended already or has another holder: see `outcome`.
pub fn release_response(reply: ReleaseReply) -> ApiResult {
    respond_json(&EndedLease::from(reply))
}

/// The problem for a lease that has ended.
pub fn ended_lease(state: LeaseState) -> Problem {
    match state {
        LeaseState::Forced => {
            let detail = "an operator ended this lease: stop the work that it protects";
            Problem::new(StatusCode::CONFLICT, "lease-forced", detail)
        }
        _ => {
            let detail = format!("this lease has ended ({}); acquire again", state.as_str());
            Problem::new(StatusCode::GONE, "lease-expired", detail)
        }
    }
}

/// The problem for a `lease_id` that holds no lease.
pub fn not_holder() -> Problem {
    let detail = "no lease of this namespace has this `lease_id`: it is wrong, or its lease ended \
                  some time ago";
    Problem::new(StatusCode::CONFLICT, "not-holder", detail)
}
