//! Locks and slots over HTTP: what their handlers share.
//!
//! `lease` and `slot` hold the handlers for clients, `lease_admin` those for operators. A conflict
//! is a 409 with the holder in its body, not a problem+json; errors are.

pub mod lease;
pub mod lease_admin;
mod lock_log;
pub mod slot;

use catraca::LockError;
use catraca::core::lock::LockRefusal;
use catraca::core::lock::reply::Lease;
use catraca::core::lock::requests::Proof;
use catraca::core::lock::{LeaseId, LockTerms};
use hyper::http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use tracing::{Level, enabled};

use crate::http::bodies::lock_responses::epoch_millis;
use crate::http::bodies::problem::{HttpResponse, Problem, respond_json};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// Runs a handler, and logs the call at the level `debug`.
pub async fn log_call(request: &ApiRequest, handler: impl Future<Output = ApiResult>) -> ApiResult {
    let result = handler.await;
    if enabled!(Level::DEBUG) {
        lock_log::log_lock_call(request, &result);
    }
    result
}

impl ApiRequest {
    fn terms(&self) -> LockTerms {
        self.app().catalog().locks.clone()
    }

    /// The proof of holding a lease, from the `lease_id` of a body and the tenant of the key.
    fn proof(&self, lease_id: &str) -> Result<Proof, Problem> {
        let tenant = self.caller.allowed_tenant(None)?.map(Into::into);
        let detail = "`lease_id` is malformed: send the 32 characters of the grant's `lease_id`";
        let id = LeaseId::parse(lease_id).ok_or_else(|| Problem::bad("bad-lock", detail))?;
        Ok(Proof { key: id.key(), tenant })
    }

    /// Writes an operator's act to the audit; returns whether it is on disk.
    pub async fn write_audit(
        &self,
        act: &str,
        target: String,
        why: Option<&str>,
    ) -> Result<bool, Problem> {
        Ok(self.app().audit_note(&self.operator(why), act, target).await?)
    }
}

/// A response with this status and body.
fn respond_json_with_status<T: Serialize>(status: StatusCode, body: &T) -> ApiResult {
    let mut response = respond_json(body)?;
    *response.status_mut() = status;
    Ok(response)
}

/// Adds the `X-Lock-*` headers of a lease.
fn with_lease_headers(mut response: HttpResponse, lease: &Lease) -> HttpResponse {
    let mut add = |name: &'static str, number: i64| {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(number));
    };
    add("x-lock-version", lease.version);
    add("x-lock-fence", lease.fence);
    if !lease.expires_at.is_forever() {
        add("x-lock-expires", epoch_millis(lease.expires_at));
    }
    response
}

fn retry_after(mut response: HttpResponse, seconds: i64) -> HttpResponse {
    // `Retry-After: 0` would ask for a retry at once.
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    response
}

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// `Retry-After` while the lock store is unavailable.
const UNAVAILABLE_RETRY_SECS: i64 = 1;

impl From<LockRefusal> for Problem {
    fn from(refusal: LockRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            LockRefusal::RequestIdReused => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request-id-reused", detail)
            }
            LockRefusal::RequestExpired => Self::new(StatusCode::GONE, "request-expired", detail),
            LockRefusal::Full { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-full", detail)
            }
            _ => Self::bad("bad-lock", detail),
        }
    }
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        let detail = error.to_string();
        match error {
            LockError::Refused(refusal) => refusal.into(),
            LockError::Starting { wait } => {
                Self::new(UNAVAILABLE, "locks-starting", detail).retry_after(wait.ceil_secs())
            }
            LockError::StoreUnavailable { .. } => {
                Self::new(UNAVAILABLE, "lock-store-unavailable", detail)
                    .retry_after(UNAVAILABLE_RETRY_SECS)
            }
            LockError::TooManyWaiters => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-waiters", detail)
            }
            LockError::WriteFailed { .. } => Self::new(UNAVAILABLE, "lock-write-failed", detail),
            _ => Self::new(UNAVAILABLE, "locks-stopping", detail),
        }
    }
}
