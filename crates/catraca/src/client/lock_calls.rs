//! Locks and slots on the server.
//!
//! Every acquire and hold has a `request_id`, so that one whose answer was lost can be repeated
//! without a second lease.

use std::time::Duration;

use catraca_core::lock::reply::ReleaseReply;
use catraca_core::lock::{LeaseId, VersionPolicy};
use catraca_core::time::Span;
use http::StatusCode;
use serde::Serialize;

use super::request_bodies::to_json;
use super::transport::{HttpAnswer, HttpCall, Repeat};
use super::{Client, ClientError, limit_wait};
use crate::engine::random_bytes;
use crate::json::{
    ConfirmedSlot, EndedHold, EndedLease, GrantedLease, InstantText, LockConflict, RenewedLease,
};
use crate::locks::whole_millis;
use crate::locks::{
    AcquireResult, LeaseGrant, LeaseLoss, LeaseOptions, LeaseRenewal, LockRequest, LockService,
    NotGranted, SlotConfirmation, SlotRequest, TakenLease,
};

#[derive(Serialize)]
struct AcquireBody<'a> {
    keys: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    version_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<i64>,
    #[serde(flatten)]
    lease: LeaseBody<'a>,
}

#[derive(Serialize)]
struct HoldBody<'a> {
    calendars: &'a [Box<str>],
    start: InstantText,
    end: InstantText,
    buffer_before_ms: i64,
    buffer_after_ms: i64,
    #[serde(flatten)]
    lease: LeaseBody<'a>,
}

#[derive(Serialize)]
struct LeaseBody<'a> {
    tenant: Option<&'a str>,
    kind: Option<&'a str>,
    ttl_ms: Option<i64>,
    max_hold_ms: Option<i64>,
    request_id: &'a str,
    version: Option<i64>,
    owner_label: Option<&'a str>,
    meta: Option<&'a str>,
}

/// The body of a call about one lease.
#[derive(Serialize)]
struct ProofBody {
    lease_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reacquire_if_free: Option<bool>,
}

impl LockService for Client {
    type Error = ClientError;

    async fn acquire(&self, request: &LockRequest) -> Result<AcquireResult, ClientError> {
        let request_id = request_id(&request.lease);
        let policy = request.version_policy;
        let body = to_json(&AcquireBody {
            keys: &request.keys,
            version_policy: policy.and_then(version_policy_word),
            wait_ms: request.wait.map(whole_millis),
            lease: LeaseBody::new(&request.lease, &request_id),
        });
        let call = HttpCall::post("/v1/locks/acquire", body, Repeat::Safe);
        let wait = limit_wait(request.wait.unwrap_or_default());
        let call = if wait.is_zero() { call } else { call.waiting() };
        self.read_acquired(&self.call(&call, wait).await?)
    }

    async fn renew(
        &self,
        lease: LeaseId,
        ttl: Option<Duration>,
    ) -> Result<LeaseRenewal, ClientError> {
        let body = ProofBody { ttl_ms: ttl.map(whole_millis), ..proof(lease) };
        let answer = self.call_about("/v1/locks/renew", &body).await?;
        match answer.read::<RenewedLease>(&self.parts.transport) {
            Ok(renewed) => Ok(LeaseRenewal::Extended { ttl: Span::from_millis(renewed.ttl_ms) }),
            Err(error) => match error.code() {
                Some("max-hold-reached") => Ok(LeaseRenewal::AtMost),
                Some("lease-expired") => Ok(LeaseRenewal::Ended(LeaseLoss::Expired)),
                Some("lease-forced") => Ok(LeaseRenewal::Ended(LeaseLoss::Forced)),
                Some("not-holder") => Ok(LeaseRenewal::Ended(LeaseLoss::NotHolder)),
                _ => Err(error),
            },
        }
    }

    async fn release(&self, lease: LeaseId) -> Result<ReleaseReply, ClientError> {
        self.end_lease("/v1/locks/release", lease).await
    }

    async fn hold(&self, request: &SlotRequest) -> Result<AcquireResult, ClientError> {
        let request_id = request_id(&request.lease);
        let body = to_json(&HoldBody {
            calendars: &request.calendars,
            start: InstantText(request.range.start),
            end: InstantText(request.range.end),
            buffer_before_ms: request.range.before.ceil_millis(),
            buffer_after_ms: request.range.after.ceil_millis(),
            lease: LeaseBody::new(&request.lease, &request_id),
        });
        let call = HttpCall::post("/v1/slots/hold", body, Repeat::Safe);
        self.read_acquired(&self.call(&call, Duration::ZERO).await?)
    }

    async fn confirm(
        &self,
        lease: LeaseId,
        reacquire_if_free: bool,
    ) -> Result<SlotConfirmation, ClientError> {
        let body = ProofBody { reacquire_if_free: Some(reacquire_if_free), ..proof(lease) };
        let answer = self.call_about("/v1/slots/confirm", &body).await?;
        let transport = &self.parts.transport;
        if answer.status == StatusCode::GONE {
            let ended: EndedHold = answer.read_as(transport)?;
            return Ok(SlotConfirmation::Ended { still_free: ended.still_free });
        }
        match answer.read::<ConfirmedSlot>(transport) {
            Ok(slot) => {
                Ok(SlotConfirmation::Confirmed { fence: slot.fence, durable: slot.durable })
            }
            Err(error) if error.code() == Some("not-holder") => Ok(SlotConfirmation::NotHolder),
            Err(error) => Err(error),
        }
    }

    async fn cancel(&self, lease: LeaseId) -> Result<ReleaseReply, ClientError> {
        self.end_lease("/v1/slots/cancel", lease).await
    }
}

impl Client {
    async fn call_about(
        &self,
        path: &'static str,
        body: &ProofBody,
    ) -> Result<HttpAnswer, ClientError> {
        self.call(&HttpCall::post(path, to_json(body), Repeat::Safe), Duration::ZERO).await
    }

    async fn end_lease(
        &self,
        path: &'static str,
        lease: LeaseId,
    ) -> Result<ReleaseReply, ClientError> {
        let answer = self.call_about(path, &proof(lease)).await?;
        let ended: EndedLease = answer.read(&self.parts.transport)?;
        let transport = &self.parts.transport;
        ended.reply().ok_or_else(|| transport.incompatible("an unknown outcome of a release"))
    }

    fn read_acquired(&self, answer: &HttpAnswer) -> Result<AcquireResult, ClientError> {
        let transport = &self.parts.transport;
        if answer.status == StatusCode::CONFLICT
            && let Ok(conflict) = answer.read_as::<LockConflict>(transport)
        {
            return Ok(Err(NotGranted::Taken(conflict.into())));
        }
        match answer.read::<GrantedLease>(transport) {
            Ok(granted) => {
                let grant = LeaseGrant::try_from(granted);
                grant.map(Ok).map_err(|why| transport.incompatible(why))
            }
            Err(error) if error.code() == Some("stale-version") => {
                Ok(Err(NotGranted::StaleVersion))
            }
            Err(error) => Err(error),
        }
    }
}

impl<'a> LeaseBody<'a> {
    fn new(options: &'a LeaseOptions, request_id: &'a str) -> Self {
        Self {
            tenant: options.tenant.as_deref(),
            kind: options.kind.as_deref(),
            ttl_ms: options.ttl.map(whole_millis),
            max_hold_ms: options.max_hold.map(whole_millis),
            request_id,
            version: options.version,
            owner_label: options.owner_label.as_deref(),
            meta: options.meta.as_deref(),
        }
    }
}

impl TryFrom<GrantedLease> for LeaseGrant {
    type Error = &'static str;

    fn try_from(granted: GrantedLease) -> Result<Self, Self::Error> {
        let InstantText(expires_at) = granted.expires_at;
        let InstantText(renewable_until) = granted.renewable_until;
        Ok(Self {
            id: LeaseId::parse(&granted.lease_id).ok_or("a grant without a valid `lease_id`")?,
            fence: granted.fence,
            version: granted.version,
            ttl: Span::from_millis(granted.ttl_ms),
            expires_at,
            renewable_until,
        })
    }
}

impl From<LockConflict> for TakenLease {
    fn from(conflict: LockConflict) -> Self {
        Self {
            taken: conflict.taken,
            owner_label: conflict.holder.owner_label,
            version: conflict.holder.version,
            retry_after: conflict.retry_after_ms.map(Span::from_millis),
            waiters: conflict.waiters,
        }
    }
}

fn proof(lease: LeaseId) -> ProofBody {
    ProofBody { lease_id: lease.reveal(), ttl_ms: None, reacquire_if_free: None }
}

/// The request id of the caller, or a random one.
fn request_id(options: &LeaseOptions) -> Box<str> {
    let random = || LeaseId::from_bytes(random_bytes()).reveal().into();
    options.request_id.clone().unwrap_or_else(random)
}

fn version_policy_word(policy: VersionPolicy) -> Option<&'static str> {
    VersionPolicy::WORDS.iter().find(|(_, known)| *known == policy).map(|(word, _)| *word)
}
