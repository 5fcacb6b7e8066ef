//! The second opinion: every grant ever made, in one list that is read from end to end each time.
//!
//! Nothing is indexed, put away or forgotten: what is over follows from the instants alone. Must
//! stay too simple to be wrong.

mod grant;

use std::collections::BTreeMap;

use catraca_core::lock::id::LeaseKey;
use catraca_core::lock::op::{Acquire, Hold, Look, Move, Proof, Range, Wanted};
use catraca_core::lock::terms::VersionPolicy;
use catraca_core::time::{Span, Time};

use grant::{DAY, Grant, taken};

/// All that ever happened.
#[derive(Default)]
pub struct Model {
    grants: Vec<Grant>,
    fence: i64,
    misses: BTreeMap<(Option<String>, String), u64>,
    /// Of which name, how high, since when, raised by whom.
    versions: Vec<(String, i64, i64, Option<LeaseKey>)>,
}

impl Model {
    fn next_fence(&mut self, now: i64) -> i64 {
        self.fence = if now > self.fence { now } else { self.fence + 1 };
        self.fence
    }

    fn expire_past(&mut self, now: i64) {
        for grant in &mut self.grants {
            if grant.confirmed && grant.ended.is_none() {
                let over = grant.range.map_or(i64::MAX, |range| taken(&range).1 + 7 * DAY);
                if over <= now {
                    // Over for longer than anybody remembers.
                    grant.ended = Some(("expired", i64::MIN / 2));
                }
            }
        }
    }

    fn again(&self, request: Option<&String>, asked: &str, now: i64) -> Option<String> {
        let request = request?;
        let same = |grant: &&Grant| grant.request.as_ref() == Some(request) && grant.known(now);
        let grant = self.grants.iter().rev().find(same)?;
        if grant.asked != asked {
            return Some("refused request-id-reused".to_owned());
        }
        let over = || "refused request-expired".to_owned();
        Some(if grant.live(now) { format!("again {}", grant.shown()) } else { over() })
    }

    /// Takes names.
    pub fn acquire(&mut self, op: &Acquire, now: i64) -> String {
        self.expire_past(now);
        let tenant = op.tenant.as_deref().map(str::to_owned);
        let request = op.lease.request.as_ref().map(|id| format!("{tenant:?}/{id}"));
        let asked = format!("{:?}", (&op.tenant, &op.kind, &op.keys, op.policy, bare(&op.lease)));
        if let Some(before) = self.again(request.as_ref(), &asked, now) {
            return before;
        }
        for key in &op.keys {
            if let Some(met) = self.grants.iter().find_map(|grant| grant.met(op, key, now)) {
                return met;
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
        self.grant((tenant, &op.kind, things, None), &op.lease, (request, asked), now)
    }

    /// Takes a range.
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
        self.grant((tenant, &op.kind, things, Some(op.range)), &op.lease, (request, asked), now)
    }

    fn grant(
        &mut self,
        (tenant, kind, things, range): (Option<String>, &str, Vec<String>, Option<Range>),
        wanted: &Wanted,
        (request, asked): (Option<String>, String),
        now: i64,
    ) -> String {
        let fence = self.next_fence(now);
        let longest = wanted.hold_max.micros().max(wanted.ttl.micros());
        self.grants.push(Grant {
            key: wanted.key,
            tenant,
            kind: kind.to_owned(),
            things,
            range,
            fence,
            version: wanted.version.unwrap_or(fence),
            since: now,
            until: now + wanted.ttl.micros(),
            hold_until: now + longest,
            confirmed: false,
            ended: None,
            cool_until: 0,
            request,
            asked,
            expired_before: 0,
        });
        format!("granted {}", self.grants[self.grants.len() - 1].shown())
    }

    fn overlap(
        &self,
        tenant: &Option<String>,
        calendars: &[String],
        range: &Range,
        without: Option<usize>,
        now: i64,
    ) -> Option<String> {
        let (start, end) = taken(range);
        for calendar in calendars {
            let mut found: Option<(i64, &Grant)> = None;
            for (at, grant) in self.grants.iter().enumerate() {
                let Some(other) = &grant.range else { continue };
                let (from, to) = taken(other);
                let here = grant.tenant == *tenant && grant.things.contains(calendar);
                let meets = (start..end).any(|instant| from <= instant && instant < to);
                if here && meets && grant.live(now) && Some(at) != without {
                    found = found.filter(|(latest, _)| *latest >= from).or(Some((from, grant)));
                }
            }
            if let Some((_, grant)) = found {
                let free = if grant.confirmed { i64::MAX } else { grant.until };
                let free = Time::from_micros(free).micros();
                return Some(format!("conflict {calendar} {} free {free}", grant.shown()));
            }
        }
        None
    }

    fn find(&mut self, proof: &Proof, now: i64) -> Option<usize> {
        self.expire_past(now);
        let tenant = proof.tenant.as_deref();
        let at = self.grants.iter().rposition(|g| g.key == proof.key && g.known(now))?;
        (tenant.is_none() || self.grants[at].tenant.as_deref() == tenant).then_some(at)
    }

    /// Makes a lease last longer.
    pub fn renew(&mut self, proof: &Proof, ttl: Span, now: i64) -> String {
        let Some(at) = self.find(proof, now) else { return "not_holder".to_owned() };
        let grant = &mut self.grants[at];
        match grant.state(now) {
            "held" => {}
            "confirmed" => return format!("at most {}", grant.shown()),
            state => return format!("over {state}"),
        }
        let wanted = now + ttl.micros();
        if grant.until >= grant.hold_until {
            return format!("at most {}", grant.shown());
        }
        grant.until = grant.until.max(wanted.min(grant.hold_until));
        format!("extended {}", grant.shown())
    }

    /// Gives names back, or a slot.
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

    /// Takes a slot for good.
    pub fn confirm(&mut self, proof: &Proof, again: bool, now: i64) -> String {
        let Some(at) = self.find(proof, now) else { return "not_holder".to_owned() };
        let grant = self.grants[at].clone();
        let Some(range) = grant.range else { return "not_holder".to_owned() };
        if grant.live(now) {
            self.grants[at].confirmed = true;
            return format!("confirmed {}", self.grants[at].shown());
        }
        let free = self.overlap(&grant.tenant, &grant.things, &range, Some(at), now).is_none();
        if grant.state(now) == "expired" && again && free {
            let fence = self.next_fence(now);
            let grant = &mut self.grants[at];
            (grant.fence, grant.since, grant.confirmed) = (fence, now, true);
            grant.expired_before += 1;
            return format!("confirmed {}", grant.shown());
        }
        format!("over {} free {free}", grant.state(now))
    }

    /// Puts a slot somewhere else.
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
        let then = Range { start: op.start, end: op.end, ..range };
        if let Some(conflict) = self.overlap(&grant.tenant, &things, &then, Some(at), now) {
            return conflict;
        }
        let fence = self.next_fence(now);
        let grant = &mut self.grants[at];
        (grant.things, grant.range, grant.fence) = (things, Some(then), fence);
        format!("moved {}", grant.shown())
    }

    /// An operator ends a lease.
    pub fn force(&mut self, fence: i64, cool_down: Span, now: i64) -> String {
        self.expire_past(now);
        let found = self.grants.iter_mut().find(|grant| grant.fence == fence && grant.live(now));
        let Some(grant) = found else { return "nothing".to_owned() };
        let until = if grant.confirmed { i64::MAX } else { grant.until };
        grant.ended = Some(("forced", now));
        grant.cool_until = (now + cool_down.micros()).min(until);
        format!("forced {}", grant.shown())
    }

    /// An operator ends what a tenant holds.
    pub fn clear(&mut self, tenant: Option<&str>, now: i64) -> String {
        self.expire_past(now);
        let (mut count, held) = (0, |grant: &&mut Grant| grant.state(now) == "held");
        let own = self.grants.iter_mut().filter(|grant| grant.tenant.as_deref() == tenant);
        for grant in own.filter(held) {
            grant.ended = Some(("forced", now));
            count += 1;
        }
        format!("cleared {count}")
    }

    /// An attempt that met somebody.
    pub fn missed(&mut self, tenant: Option<&str>, kind: &str) {
        *self.misses.entry((tenant.map(str::to_owned), kind.to_owned())).or_default() += 1;
    }

    /// A grant that never was: neither counted nor its version remembered.
    pub fn undo(&mut self, key: LeaseKey, now: i64) {
        self.expire_past(now);
        let last = self.grants.iter().rposition(|grant| grant.key == key && grant.known(now));
        let Some(at) = last.filter(|at| self.grants[*at].live(now)) else { return };
        self.grants[at].ended = Some(("undone", i64::MIN / 2));
        let Grant { tenant, kind, things, range: None, .. } = self.grants[at].clone() else {
            return;
        };
        for thing in things {
            let name = format!("{tenant:?}/{kind}/{thing}");
            let mut last = self.versions.iter().enumerate().rev();
            let last = last.find(|(_, (own, ..))| *own == name).map(|(place, _)| place);
            if let Some(place) = last.filter(|place| self.versions[*place].3 == Some(key)) {
                self.versions.remove(place);
                // Whoever raised the one before cannot take it back any more.
                let mut before = self.versions.iter_mut().rev();
                if let Some(before) = before.find(|(own, ..)| *own == name) {
                    before.3 = None;
                }
            }
        }
    }

    /// What is free, one microsecond at a time.
    pub fn look(&mut self, op: &Look, now: i64) -> String {
        self.expire_past(now);
        let tenant = op.tenant.as_deref();
        let busy: Vec<(i64, i64)> = self
            .grants
            .iter()
            .filter_map(|grant| {
                let here = grant.tenant.as_deref() == tenant
                    && grant.things.iter().any(|thing| **thing == *op.calendar);
                let counts = here && grant.live(now) && Some(grant.key) != op.without;
                grant.range.filter(|_| counts).map(|range| taken(&range))
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

    /// What is in force, by its numbers.
    pub fn list(&mut self, now: i64) -> String {
        self.expire_past(now);
        let mut live: Vec<&Grant> = self.grants.iter().filter(|grant| grant.live(now)).collect();
        live.sort_by_key(|grant| grant.fence);
        let shown: Vec<String> = live.into_iter().map(Grant::shown).collect();
        format!("{shown:?}")
    }

    /// What became of every attempt, counted anew.
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

/// A wish without what tells two of the same apart.
fn bare(wanted: &Wanted) -> impl std::fmt::Debug {
    (wanted.ttl, wanted.hold_max, wanted.version, wanted.label.clone(), wanted.meta.clone())
}
