//! The arguments of a call of the lock script: the keys of a namespace (`KEYS`), and the encoded
//! operation (`ARGV[1]`). The fields of each operation are listed in the Lua files.

use catraca_core::lock::requests::{Acquire, AvailabilityQuery, Hold, LeaseRequest, Move, Proof};
use catraca_core::lock::table::idempotency::RequestDigest;
use catraca_core::lock::{LeaseKey, LockName, LockOp, NameDigest, VersionPolicy};
use catraca_core::time::Span;

/// The letters of a namespace's keys, in the order of `KEYS` in `prelude.lua`. Stored keys depend
/// on them.
const LETTERS: &[u8; 11] = b"flncdvtrwus";
/// The largest number whose successor is still below 2^53 (the script adds one to the bounds of
/// pages): 2^53 - 2. Larger ones are sent as 2^53 - 1.
const LARGEST: i64 = (1 << 53) - 2;

/// The encoded operation of one call of the script.
pub(super) struct LockScriptArgs<'a> {
    namespace: &'a str,
    /// Added to every grace after a failover.
    margin: Span,
    bytes: Vec<u8>,
}

/// The names of a namespace's keys. With the letter `k` they are longer than the names of cells, so
/// both can have the same prefix.
pub(super) fn namespace_keys(prefix: &[u8], namespace: &str) -> Vec<Vec<u8>> {
    let NameDigest(digest) = NameDigest::of_namespace(namespace);
    LETTERS.iter().map(|letter| [prefix, b"k", &[*letter], &digest].concat()).collect()
}

/// The group of a namespace's keys, which decides their server in a cluster.
pub(super) fn namespace_group(namespace: &str) -> u16 {
    let NameDigest(digest) = NameDigest::of_namespace(namespace);
    u16::from_le_bytes([digest[0], digest[1]])
}

impl<'a> LockScriptArgs<'a> {
    pub fn new(namespace: &'a str, op: &LockOp, margin: Span) -> Self {
        let mut args = Self { namespace, margin, bytes: vec![operation(op)] };
        match op {
            LockOp::Acquire { request, counts_conflict: counts } => args.acquire(request, *counts),
            LockOp::Hold(request) => args.hold(request),
            LockOp::CountConflict { tenant, kind } => args.counts_key(tenant.as_deref(), kind),
            LockOp::Renew { proof, ttl, .. } => args.proof(proof).numbers(&[ttl.micros()]),
            LockOp::Release(proof) | LockOp::Cancel(proof) | LockOp::Show(proof) => {
                args.proof(proof);
            }
            LockOp::Confirm { proof, again, grace } => {
                args.proof(proof).flag(*again);
                args.grace(*grace);
            }
            LockOp::Relocate(request) => args.relocate(request),
            LockOp::Availability(query) => args.look(query),
            LockOp::List { after, most } => {
                args.numbers(&[*after, i64::try_from(*most).unwrap_or(LARGEST)]);
            }
            LockOp::Force { fence, tenant, cool_down } => {
                args.numbers(&[*fence]);
                args.maybe_tenant(tenant.as_deref());
                args.numbers(&[cool_down.micros()]);
            }
            LockOp::Clear { tenant, after, upto, most } => {
                args.tenant(tenant.as_deref());
                args.numbers(&[*after]);
                args.flag(upto.is_some());
                args.numbers(&[upto.unwrap_or(0), i64::try_from(*most).unwrap_or(LARGEST)]);
            }
            LockOp::Undo(key) => args.key(Some(*key)),
            LockOp::Sweep | LockOp::Counters => {}
        }
        args
    }

    /// `ARGV[1]`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn acquire(&mut self, request: &Acquire, counts: bool) {
        self.flag(counts);
        self.flag(request.policy == VersionPolicy::Monotonic);
        let tenant = request.tenant.as_deref();
        self.lease_request(&request.lease, tenant, &request.kind, false, request.request_digest());
        self.texts(&request.keys);
        for key in &request.keys {
            let name = LockName {
                tenant: request.tenant.clone(),
                kind: request.kind.clone(),
                key: key.clone(),
            };
            let NameDigest(digest) = name.digest(self.namespace);
            self.bytes.extend(digest);
        }
    }

    fn hold(&mut self, request: &Hold) {
        let tenant = request.tenant.as_deref();
        self.lease_request(&request.lease, tenant, &request.kind, true, request.request_digest());
        let range = &request.range;
        self.numbers(&[range.start.micros(), range.end.micros()]);
        self.numbers(&[range.before.micros(), range.after.micros()]);
        self.texts(&request.calendars);
    }

    /// The fields that acquire and hold share; `read_wanted` in `acquire.lua` reads them.
    fn lease_request(
        &mut self,
        lease: &LeaseRequest,
        tenant: Option<&str>,
        kind: &str,
        is_slot: bool,
        request: Option<RequestDigest>,
    ) {
        self.key(Some(lease.key));
        self.flag(is_slot);
        self.numbers(&[lease.ttl.micros(), lease.hold_max.micros()]);
        self.grace(lease.grace);
        self.flag(lease.version.is_some());
        self.numbers(&[lease.version.unwrap_or(0)]);
        self.tenant(tenant);
        self.flag(request.is_some());
        // Zeros without a request id.
        let (id_digest, content_digest) = request.unwrap_or_default();
        self.bytes.extend(id_digest);
        self.bytes.extend(content_digest);
        self.counts_key(tenant, kind);
        let mut tail = Vec::new();
        maybe_text(&mut tail, lease.label.as_deref());
        maybe_text(&mut tail, lease.meta.as_deref());
        text(&mut self.bytes, &tail);
    }

    fn relocate(&mut self, request: &Move) {
        self.proof(&request.proof).numbers(&[request.start.micros(), request.end.micros()]);
        self.grace(request.grace);
        self.flag(request.calendars.is_some());
        self.texts(request.calendars.as_deref().unwrap_or_default());
    }

    fn look(&mut self, query: &AvailabilityQuery) {
        self.tenant(query.tenant.as_deref());
        text(&mut self.bytes, query.calendar.as_bytes());
        self.numbers(&[query.from.micros(), query.to.micros()]);
        self.flag(query.excluded_lease.is_some());
        self.key(query.excluded_lease);
    }

    /// How long nothing is granted after a failover; zero stays zero.
    fn grace(&mut self, grace: Span) {
        let margin = if grace == Span::ZERO { Span::ZERO } else { self.margin };
        self.numbers(&[grace.micros().saturating_add(margin.micros())]);
    }

    fn proof(&mut self, proof: &Proof) -> &mut Self {
        self.key(Some(proof.key));
        self.maybe_tenant(proof.tenant.as_deref());
        self
    }

    fn maybe_tenant(&mut self, tenant: Option<&str>) {
        self.flag(tenant.is_some());
        self.tenant(tenant);
    }

    /// The digest of a tenant, also of "no tenant".
    fn tenant(&mut self, tenant: Option<&str>) {
        self.bytes.extend(NameDigest::of_tenant(self.namespace, tenant).0);
    }

    /// The digest of a proof; zeros if there is none.
    fn key(&mut self, key: Option<LeaseKey>) {
        self.bytes.extend(key.map(LeaseKey::to_bytes).unwrap_or_default());
    }

    /// The key of the counts: tenant and kind as one text.
    fn counts_key(&mut self, tenant: Option<&str>, kind: &str) {
        let mut row = Vec::new();
        maybe_text(&mut row, tenant);
        text(&mut row, kind.as_bytes());
        text(&mut self.bytes, &row);
    }

    fn texts(&mut self, texts: &[Box<str>]) {
        self.bytes.push(u8::try_from(texts.len()).unwrap_or(u8::MAX));
        texts.iter().for_each(|one| text(&mut self.bytes, one.as_bytes()));
    }

    fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    fn numbers(&mut self, numbers: &[i64]) {
        for number in numbers {
            self.bytes.extend(((*number).min(LARGEST + 1) as f64).to_le_bytes());
        }
    }
}

/// A text behind its length in four bytes.
fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(text);
}

/// A text behind its length plus one; 0 means that there is none.
fn maybe_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    let length = text.map_or(0, |text| text.len() + 1);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(text.unwrap_or_default().as_bytes());
}

/// The number of an operation in `dispatch.lua`. Nodes of several versions may share a store, so
/// numbers may be added, but not changed.
const fn operation(op: &LockOp) -> u8 {
    match op {
        LockOp::Acquire { .. } => 1,
        LockOp::Hold(_) => 2,
        LockOp::CountConflict { .. } => 3,
        LockOp::Renew { .. } => 4,
        LockOp::Release(_) => 5,
        LockOp::Cancel(_) => 6,
        LockOp::Confirm { .. } => 7,
        LockOp::Relocate(_) => 8,
        LockOp::Availability(_) => 9,
        LockOp::Show(_) => 10,
        LockOp::List { .. } => 11,
        LockOp::Force { .. } => 12,
        LockOp::Clear { .. } => 13,
        LockOp::Undo(_) => 14,
        LockOp::Sweep => 15,
        LockOp::Counters => 16,
    }
}
