//! Random acquires and holds, some of them repeated.

use catraca_core::lock::id::LeaseId;
use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest};
use catraca_core::lock::terms::VersionPolicy;
use catraca_core::lock::{LockOp, LockOutcome};
use catraca_core::time::Span;

use super::describe::{describe_conflict, describe_lease, wrong_reply};
use super::{LockTrace, StepAnswers};

impl LockTrace<'_> {
    fn random_request(&mut self, tenant: Option<&str>) -> LeaseRequest {
        let request: Option<Box<str>> = self.rng.maybe(15, |rng| rng.pick(&["m", "n", "o"]).into());
        self.next += 1;
        // The lease id depends on the request id, so that a repetition has the same lease.
        let mut bytes = [0; 16];
        match &request {
            Some(name) => {
                bytes[0] = name.as_bytes()[0];
                bytes[1] = tenant.map_or(0, |tenant| tenant.as_bytes()[0]);
            }
            None => bytes[8..].copy_from_slice(&self.next.to_be_bytes()),
        }
        let key = LeaseId::from_bytes(bytes).key();
        self.keys.push(key);
        let ttl = Span::from_micros(self.rng.within(1, 30));
        let hold_max = Span::from_micros(self.rng.within(20, 60));
        let version = self.rng.maybe(40, |rng| rng.within(0, 9));
        LeaseRequest { request, version, ..LeaseRequest::new(key, ttl, hold_max) }
    }

    /// Executes an acquire or a hold; a conflict is counted in the model too.
    fn request_lease(&mut self, op: &LockOp, tenant: Option<&str>, kind: &str) -> String {
        let LockOutcome::Acquired(answer) = self.execute(op) else { return wrong_reply() };
        match answer {
            AcquireReply::Granted(view) => {
                self.fences.push(view.fence);
                format!("granted {}", describe_lease(&view))
            }
            AcquireReply::Again(view) => format!("again {}", describe_lease(&view)),
            AcquireReply::Conflict(conflict) => {
                self.model.count_conflict(tenant, kind);
                describe_conflict(&conflict)
            }
            AcquireReply::Stale { name, last } => {
                self.model.count_conflict(tenant, kind);
                format!("stale {} {last}", name.key)
            }
            AcquireReply::Refused(refusal) => format!("refused {}", refusal.code()),
        }
    }

    pub(super) fn acquire(&mut self) -> StepAnswers {
        let tenant = self.tenant();
        let keys = self.names();
        let lease = self.random_request(tenant.as_deref());
        let monotonic = lease.version.is_some() && self.rng.chance(60);
        let policy = if monotonic { VersionPolicy::Monotonic } else { VersionPolicy::Opaque };
        let kind = self.rng.pick(&["payment", "resource"]).into();
        let op = Acquire { tenant, kind, keys, lease, policy }.validate();
        let Ok(request) = op else { return StepAnswers::default() };
        self.request(LockOp::Acquire { request, counts_conflict: true })
    }

    pub(super) fn hold(&mut self) -> StepAnswers {
        let tenant = self.tenant();
        let calendars = self.names();
        let lease = self.random_request(tenant.as_deref());
        let op = Hold { tenant, kind: "slot".into(), calendars, range: self.range(), lease };
        let Ok(op) = op.validate(Span::from_secs(1)) else { return StepAnswers::default() };
        self.request(LockOp::Hold(op))
    }

    /// Requests a lease, or now and then repeats the last request that had an id.
    fn request(&mut self, new: LockOp) -> StepAnswers {
        let repeated = self.last_with_id.clone().filter(|_| self.rng.chance(10));
        let op = repeated.unwrap_or(new);
        let (theirs, tenant, kind, id) = match &op {
            LockOp::Acquire { request, .. } => {
                let theirs = self.model.acquire(request, self.now);
                (theirs, &request.tenant, &request.kind, &request.lease.request)
            }
            LockOp::Hold(request) => {
                let theirs = self.model.hold(request, self.now);
                (theirs, &request.tenant, &request.kind, &request.lease.request)
            }
            _ => return StepAnswers::default(),
        };
        if id.is_some() {
            self.last_with_id = Some(op.clone());
        }
        let ours = self.request_lease(&op, tenant.as_deref(), kind);
        (format!("{op:?}"), ours, theirs)
    }
}
