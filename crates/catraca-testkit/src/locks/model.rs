//! The lock model: every grant ever made, in one list that each operation reads from end to end.
//!
//! Nothing is indexed or deleted: whether a grant is active follows from the instants alone. It is
//! slow so that it can be simple.

mod grant;

use std::collections::BTreeMap;

use catraca_core::lock::id::LeaseKey;
use catraca_core::lock::requests::{
    Acquire, AvailabilityQuery, Hold, LeaseRequest, Move, Proof, TimeRange,
};
use catraca_core::lock::terms::VersionPolicy;
use catraca_core::time::{Span, Time};

use grant::{DAY, Grant, occupied_range};

/// All grants, conflicts and versions of a trace.
#[derive(Default)]
pub struct LockModel {
    grants: Vec<Grant>,
    fence: i64,
    /// Conflicts by tenant and kind.
    misses: BTreeMap<(Option<String>, String), u64>,
    /// Versions of names: the name, the version, when it was set and by which lease.
    versions: Vec<(String, i64, i64, Option<LeaseKey>)>,
}

/// The parts of a new grant that are not in its lease request.
struct NewGrant {
    tenant: Option<String>,
    kind: String,
    things: Vec<String>,
    range: Option<TimeRange>,
    request: Option<String>,
    asked: String,
}

impl LockModel {
    /// Fences follow the clock, and always increase.
    fn next_fence(&mut self, now: i64) -> i64 {
        self.fence = if now > self.fence { now } else { self.fence + 1 };
        self.fence
    }

    /// Expires confirmed slots a week after their end.
    fn expire_past(&mut self, now: i64) {
        for grant in &mut self.grants {
            if grant.confirmed && grant.ended.is_none() {
                let over = grant.range.map_or(i64::MAX, |range| occupied_range(&range).1 + 7 * DAY);
                if over <= now {
                    // So long ago that the lease is no longer remembered.
                    grant.ended = Some(("expired", i64::MIN / 2));
                }
            }
        }
    }

    /// The answer to a repeated request id, if it is one.
    fn again(&self, request: Option<&String>, asked: &str, now: i64) -> Option<String> {
        let request = request?;
        let same =
            |grant: &&Grant| grant.request.as_ref() == Some(request) && grant.is_remembered(now);
        let grant = self.grants.iter().rev().find(same)?;
        if grant.asked != asked {
            return Some("refused request-id-reused".to_owned());
        }
        if !grant.live(now) {
            return Some("refused request-expired".to_owned());
        }
        Some(format!("again {}", grant.describe()))
    }

    /// Acquires names.
    pub fn acquire(&mut self, op: &Acquire, now: i64) -> String {
        self.expire_past(now);
        let tenant = op.tenant.as_deref().map(str::to_owned);
        let request = op.lease.request.as_ref().map(|id| format!("{tenant:?}/{id}"));
        let asked = format!("{:?}", (&op.tenant, &op.kind, &op.keys, op.policy, bare(&op.lease)));
        if let Some(before) = self.again(request.as_ref(), &asked, now) {
            return before;
        }
        for key in &op.keys {
            let mut grants = self.grants.iter();
            if let Some(conflict) = grants.find_map(|grant| grant.conflict_with(op, key, now)) {
                return conflict;
            }
        }
        if op.policy == VersionPolicy::Monotonic {
            let version = op.lease.version.unwrap_or(-1);
            let name = |key: &str| format!("{tenant:?}/{}/{key}", op.kind);
            for key in &op.keys {
                let mut last = self.versions.iter().rev().filter(|(own, ..)| *own == name(key));
                let last = last.next().filter(|(_, _, at, _)| now < at + DAY);
                if let Some((_, last, ..)) = last.filter(|(_, last, ..)| version <= *last) {
                    return format!("stale {key} {last}");
                }
            }
            let raised = op.keys.iter().map(|key| (name(key), version, now, Some(op.lease.key)));
            self.versions.extend(raised.collect::<Vec<_>>());
        }
        let things = op.keys.iter().map(|key| key.to_string()).collect();
        let kind = op.kind.to_string();
        let new = NewGrant { tenant, kind, things, range: None, request, asked };
        self.grant(new, &op.lease, now)
    }

    /// Holds a slot.
    pub fn hold(&mut self, op: &Hold, now: i64) -> String {
        self.expire_past(now);
        let tenant = op.tenant.as_deref().map(str::to_owned);
        let request = op.lease.request.as_ref().map(|id| format!("{tenant:?}/{id}"));
        let asked =
            format!("{:?}", (&op.tenant, &op.kind, &op.calendars, op.range, bare(&op.lease)));
        if let Some(before) = self.again(request.as_ref(), &asked, now) {
            return before;
        }
        let things: Vec<String> = op.calendars.iter().map(|name| name.to_string()).collect();
        if let Some(conflict) = self.overlap(&tenant, &things, &op.range, None, now) {
            return conflict;
        }
        let kind = op.kind.to_string();
        let new = NewGrant { tenant, kind, things, range: Some(op.range), request, asked };
        self.grant(new, &op.lease, now)
    }

    fn grant(&mut self, new: NewGrant, wanted: &LeaseRequest, now: i64) -> String {
        let fence = self.next_fence(now);
        let longest = wanted.hold_max.micros().max(wanted.ttl.micros());
        self.grants.push(Grant {
            key: wanted.key,
            tenant: new.tenant,
            kind: new.kind,
            things: new.things,
            range: new.range,
            fence,
            version: wanted.version.unwrap_or(fence),
            since: now,
            until: now + wanted.ttl.micros(),
            hold_until: now + longest,
            confirmed: false,
            ended: None,
            cool_until: 0,
            request: new.request,
            asked: new.asked,
            expired_before: 0,
        });
        format!("granted {}", self.grants[self.grants.len() - 1].describe())
    }

    /// The conflict with the overlapping slot that starts last, in the first calendar that has one.
    fn overlap(
        &self,
        tenant: &Option<String>,
        calendars: &[String],
        range: &TimeRange,
        without: Option<usize>,
        now: i64,
    ) -> Option<String> {
        let (start, end) = occupied_range(range);
        for calendar in calendars {
            let mut found: Option<(i64, &Grant)> = None;
            for (at, grant) in self.grants.iter().enumerate() {
                let Some(other) = &grant.range else { continue };
                let (from, to) = occupied_range(other);
                let here = grant.tenant == *tenant && grant.things.contains(calendar);
                let meets = (start..end).any(|instant| from <= instant && instant < to);
                if here && meets && grant.live(now) && Some(at) != without {
                    // Of several overlapping slots the conflict names the one that starts last.
                    found = found.filter(|(latest, _)| *latest >= from).or(Some((from, grant)));
                }
            }
            if let Some((_, grant)) = found {
                let free = if grant.confirmed { i64::MAX } else { grant.until };
                let free = Time::from_micros(free).micros();
                return Some(format!("conflict {calendar} {} free {free}", grant.describe()));
            }
        }
        None
    }

    /// The index of the lease that a proof names, if it is still remembered.
    fn find(&mut self, proof: &Proof, now: i64) -> Option<usize> {
        self.expire_past(now);
        let tenant = proof.tenant.as_deref();
        let at = self.grants.iter().rposition(|g| g.key == proof.key && g.is_remembered(now))?;
        (tenant.is_none() || self.grants[at].tenant.as_deref() == tenant).then_some(at)
    }

    /// Renews a lease.
    pub fn renew(&mut self, proof: &Proof, ttl: Span, now: i64) -> String {
        let Some(at) = self.find(proof, now) else { return "not_holder".to_owned() };
        let grant = &mut self.grants[at];
        match grant.state(now) {
            "held" => {}
            "confirmed" => return format!("at most {}", grant.describe()),
            state => return format!("over {state}"),
        }
        let wanted = now + ttl.micros();
        if grant.until >= grant.hold_until {
            return format!("at most {}", grant.describe());
        }
        grant.until = grant.until.max(wanted.min(grant.hold_until));
        format!("extended {}", grant.describe())
    }

    /// Releases names, or cancels a slot.
    pub fn end(&mut self, proof: &Proof, slot: bool, now: i64) -> String {
        let Some(at) = self.find(proof, now) else { return "not_holder".to_owned() };
        let grant = &mut self.grants[at];
        if grant.range.is_some() != slot {
            return "not_holder".to_owned();
        }
        match grant.state(now) {
            "released" => "already_released",
            "expired" => "expired",
            "forced" => "not_holder",
            _ => {
                grant.ended = Some(("released", now));
                "released"
            }
        }
        .to_owned()
    }

    /// Confirms a slot; with `again` also one that expired, if its time is still free.
    pub fn confirm(&mut self, proof: &Proof, again: bool, now: i64) -> String {
        let Some(at) = self.find(proof, now) else { return "not_holder".to_owned() };
        let grant = self.grants[at].clone();
        let Some(range) = grant.range else { return "not_holder".to_owned() };
        if grant.live(now) {
            self.grants[at].confirmed = true;
            return format!("confirmed {}", self.grants[at].describe());
        }
        let free = self.overlap(&grant.tenant, &grant.things, &range, Some(at), now).is_none();
        if grant.state(now) == "expired" && again && free {
            let fence = self.next_fence(now);
            let grant = &mut self.grants[at];
            grant.fence = fence;
            grant.since = now;
            grant.confirmed = true;
            grant.expired_before += 1;
            return format!("confirmed {}", grant.describe());
        }
        format!("over {} free {free}", grant.state(now))
    }

    /// Moves a slot.
    pub fn relocate(&mut self, op: &Move, now: i64) -> String {
        let Some(at) = self.find(&op.proof, now) else { return "not_holder".to_owned() };
        let grant = self.grants[at].clone();
        let Some(range) = grant.range else { return "not_holder".to_owned() };
        if !grant.live(now) {
            return format!("over {}", grant.state(now));
        }
        let things = match &op.calendars {
            Some(others) => others.iter().map(|name| name.to_string()).collect(),
            None => grant.things.clone(),
        };
        let then = TimeRange { start: op.start, end: op.end, ..range };
        if let Some(conflict) = self.overlap(&grant.tenant, &things, &then, Some(at), now) {
            return conflict;
        }
        let fence = self.next_fence(now);
        let grant = &mut self.grants[at];
        grant.things = things;
        grant.range = Some(then);
        grant.fence = fence;
        format!("moved {}", grant.describe())
    }

    /// Ends a lease by an operator's order.
    pub fn force(&mut self, fence: i64, cool_down: Span, now: i64) -> String {
        self.expire_past(now);
        let found = self.grants.iter_mut().find(|grant| grant.fence == fence && grant.live(now));
        let Some(grant) = found else { return "nothing".to_owned() };
        let until = if grant.confirmed { i64::MAX } else { grant.until };
        grant.ended = Some(("forced", now));
        grant.cool_until = (now + cool_down.micros()).min(until);
        format!("forced {}", grant.describe())
    }

    /// Ends all leases of a tenant by an operator's order; confirmed slots stay.
    pub fn clear(&mut self, tenant: Option<&str>, now: i64) -> String {
        self.expire_past(now);
        let mut count = 0;
        let held = |grant: &&mut Grant| grant.state(now) == "held";
        let own = self.grants.iter_mut().filter(|grant| grant.tenant.as_deref() == tenant);
        for grant in own.filter(held) {
            grant.ended = Some(("forced", now));
            count += 1;
        }
        format!("cleared {count}")
    }

    /// Counts an attempt that ended in a conflict.
    pub fn count_conflict(&mut self, tenant: Option<&str>, kind: &str) {
        *self.misses.entry((tenant.map(str::to_owned), kind.to_owned())).or_default() += 1;
    }

    /// Undoes a grant, as if it had never been made: it is not counted, and its version is removed.
    pub fn undo(&mut self, key: LeaseKey, now: i64) {
        self.expire_past(now);
        let last =
            self.grants.iter().rposition(|grant| grant.key == key && grant.is_remembered(now));
        let Some(at) = last.filter(|at| self.grants[*at].live(now)) else { return };
        // Ended so long ago that the lease is no longer remembered.
        self.grants[at].ended = Some(("undone", i64::MIN / 2));
        let Grant { tenant, kind, things, range: None, .. } = self.grants[at].clone() else {
            return;
        };
        for thing in things {
            let name = format!("{tenant:?}/{kind}/{thing}");
            let mut last = self.versions.iter().enumerate().rev();
            let last = last.find(|(_, (own, ..))| *own == name).map(|(index, _)| index);
            if let Some(index) = last.filter(|index| self.versions[*index].3 == Some(key)) {
                self.versions.remove(index);
                // The lease that set the version before can no longer undo it.
                let mut before = self.versions.iter_mut().rev();
                if let Some(before) = before.find(|(own, ..)| *own == name) {
                    before.3 = None;
                }
            }
        }
    }

    /// The free ranges of a calendar, found one microsecond at a time.
    pub fn look(&mut self, op: &AvailabilityQuery, now: i64) -> String {
        self.expire_past(now);
        let tenant = op.tenant.as_deref();
        let busy: Vec<(i64, i64)> = self
            .grants
            .iter()
            .filter_map(|grant| {
                let here = grant.tenant.as_deref() == tenant
                    && grant.things.iter().any(|thing| **thing == *op.calendar);
                let counts = here && grant.live(now) && Some(grant.key) != op.excluded_lease;
                grant.range.filter(|_| counts).map(|range| occupied_range(&range))
            })
            .collect();
        let mut free = Vec::new();
        let mut since = None;
        for instant in op.from.micros()..=op.to.micros() {
            let is_free = instant < op.to.micros()
                && !busy.iter().any(|(from, to)| *from <= instant && instant < *to);
            match (is_free, since) {
                (true, None) => since = Some(instant),
                (false, Some(start)) => {
                    if instant - start >= op.min_length.micros() {
                        free.push((start, instant));
                    }
                    since = None;
                }
                _ => {}
            }
        }
        format!("free {free:?}")
    }

    /// All active leases, by fence.
    pub fn list(&mut self, now: i64) -> String {
        self.expire_past(now);
        let mut live: Vec<&Grant> = self.grants.iter().filter(|grant| grant.live(now)).collect();
        live.sort_by_key(|grant| grant.fence);
        let leases: Vec<String> = live.into_iter().map(Grant::describe).collect();
        format!("{leases:?}")
    }

    /// The counts of all attempts by tenant and kind: success, conflicts, active, released, expired
    /// and forced.
    pub fn counts(&mut self, now: i64) -> String {
        self.expire_past(now);
        let mut rows: BTreeMap<(Option<String>, String), [u64; 6]> = BTreeMap::new();
        for (row, misses) in &self.misses {
            rows.entry(row.clone()).or_default()[1] += misses;
        }
        for grant in &self.grants {
            let row = rows.entry((grant.tenant.clone(), grant.kind.clone())).or_default();
            row[0] += 1 + grant.expired_before;
            row[4] += grant.expired_before;
            match grant.state(now) {
                "undone" => row[0] -= 1,
                "released" => row[3] += 1,
                "expired" => row[4] += 1,
                "forced" => row[5] += 1,
                _ => row[2] += 1,
            }
        }
        format!("{rows:?}")
    }
}

/// The fields of a request that a repetition under the same request id must not change.
fn bare(wanted: &LeaseRequest) -> impl std::fmt::Debug {
    (wanted.ttl, wanted.hold_max, wanted.version, wanted.label.clone(), wanted.meta.clone())
}
