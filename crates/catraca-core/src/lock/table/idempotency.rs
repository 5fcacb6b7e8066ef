//! Idempotency of acquire and hold: the same request id with the same parameters returns the same
//! lease.
//!
//! Both are stored as digests, as long as the lease is remembered.

use super::LockTable;
use crate::lock::digest::Digest;
use crate::lock::refusal::LockRefusal;
use crate::lock::reply::AcquireReply;
use crate::lock::requests::{Acquire, Hold, LeaseRequest};

/// The digests of the request id, and of the parameters of the request.
pub type RequestDigest = ([u8; 16], [u8; 16]);

impl LockTable {
    /// The reply to a request that was granted before; `None` for a new request.
    pub(super) fn reply_to_repeat(&self, digest: Option<RequestDigest>) -> Option<AcquireReply> {
        let (id, parameters) = digest?;
        let (known_parameters, key) = self.requests.get(&id)?;
        if *known_parameters != parameters {
            return Some(AcquireReply::Refused(LockRefusal::RequestIdReused));
        }
        let entry = self.leases.get(key)?;
        let is_live = entry.lease.state.is_live() && self.now < entry.lease.expires_at;
        Some(if is_live {
            AcquireReply::Again(Box::new(entry.lease.clone()))
        } else {
            AcquireReply::Refused(LockRefusal::RequestExpired)
        })
    }
}

impl Acquire {
    /// The digests that identify this request; `None` without a request id.
    pub fn request_digest(&self) -> Option<RequestDigest> {
        digest_acquire(self)
    }
}

impl Hold {
    /// The digests that identify this request; `None` without a request id.
    pub fn request_digest(&self) -> Option<RequestDigest> {
        digest_hold(self)
    }
}

pub(super) fn digest_acquire(request: &Acquire) -> Option<RequestDigest> {
    let id = digest_request_id(request.tenant.as_deref(), request.lease.request.as_deref()?);
    let mut parameters = Digest::new("acquire");
    parameters
        .text(request.tenant.as_deref())
        .text(Some(&request.kind))
        .number(request.policy as i64);
    digest_lease(parameters.texts(&request.keys), &request.lease);
    Some((id, parameters.finish()))
}

pub(super) fn digest_hold(request: &Hold) -> Option<RequestDigest> {
    let id = digest_request_id(request.tenant.as_deref(), request.lease.request.as_deref()?);
    let mut parameters = Digest::new("hold");
    parameters.text(request.tenant.as_deref()).text(Some(&request.kind));
    parameters.time(request.range.start).time(request.range.end);
    parameters.number(request.range.before.micros()).number(request.range.after.micros());
    digest_lease(parameters.texts(&request.calendars), &request.lease);
    Some((id, parameters.finish()))
}

fn digest_request_id(tenant: Option<&str>, request: &str) -> [u8; 16] {
    let mut digest = Digest::new("request");
    digest.text(tenant).text(Some(request));
    digest.finish()
}

fn digest_lease(digest: &mut Digest, lease: &LeaseRequest) {
    digest.number(lease.ttl.micros()).number(lease.hold_max.micros());
    // No valid version is negative.
    digest.number(lease.version.unwrap_or(-1));
    digest.text(lease.label.as_deref()).text(lease.meta.as_deref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::id::LeaseKey;
    use crate::lock::requests::TimeRange;
    use crate::time::{Span, Time};

    #[test]
    fn a_repeated_hold_has_the_digest_of_its_parameters() {
        let ttl = Span::from_secs(10);
        let digest = |request: Option<&str>, version: Option<i64>| {
            let lease = LeaseRequest {
                request: request.map(Box::from),
                version,
                ..LeaseRequest::new(LeaseKey::from_bytes([1; 16]), ttl, ttl)
            };
            let range = TimeRange {
                start: Time::ZERO,
                end: Time::ZERO.after(ttl),
                before: Span::ZERO,
                after: Span::ZERO,
            };
            let calendars = vec!["c".into()];
            Hold { tenant: None, kind: "k".into(), calendars, range, lease }.request_digest()
        };
        assert_eq!(digest(None, None), None);
        assert_eq!(digest(Some("r"), None), digest(Some("r"), None));
        let distinct =
            [digest(Some("r"), None), digest(Some("s"), None), digest(Some("r"), Some(1))];
        assert!(distinct[0] != distinct[1] && distinct[0] != distinct[2]);
    }
}
