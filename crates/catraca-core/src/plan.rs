//! Planning a check: selected rows become one batch, and the ticket's body if one is wanted.
//!
//! Must not touch state, nor depend on anything but its arguments: an id comes in, it is not made
//! here.

use smallvec::SmallVec;

use crate::batch::{self, Batch, CheckRow};
use crate::catalog::Catalog;
use crate::digest::{Digester, Domain, Key};
use crate::limit::Limit;
use crate::museum::{Bug, planted};
use crate::policy::{Mode, Policy, Terms};
use crate::refusal::Refusal;
use crate::request::Check;
use crate::resets::Resets;
use crate::select::{Parts, Selected, Selection};
use crate::spread::Spread;
use crate::subject::Subject;
use crate::ticket::{Body, TicketRow};
use crate::time::{Span, Time};

/// A batch, and what is needed to read its reply.
#[derive(Clone, Debug)]
pub struct Plan<'c, 's> {
    /// What the store is asked.
    pub batch: Batch,
    /// The selected rows, in order.
    pub rows: Selection<'c, 's>,
    /// What a ticket would say, if one is wanted.
    pub body: Option<Box<Body>>,
}

/// The scope in which keys are made.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The digests' secret.
    pub digester: &'a Digester,
    /// The namespace.
    pub namespace: &'a str,
    /// The requested gate, when the default policy stands in for one that nobody declared.
    pub unlisted: Option<&'a str>,
    /// By what keys are spread, where a store has several servers.
    pub spread: &'a Spread,
    /// Since when policies count anew.
    pub resets: &'a Resets,
}

impl Scope<'_> {
    /// The key of (namespace, policy, parts), since the policy was last reset for everybody.
    #[inline]
    pub fn key(&self, policy: &str, parts: &Parts<'_, '_>) -> Key {
        self.current(policy, self.lasting(policy, parts))
    }

    /// The key under which a lasting one is found now.
    #[inline]
    pub fn current(&self, policy: &str, lasting: Key) -> Key {
        let Some(epoch) = self.resets.epoch(policy) else { return lasting };
        let mut hasher = self.digester.start(Domain::Epoch);
        hasher.part(&lasting.to_bytes()).part(&epoch.micros().to_le_bytes());
        self.spread.place(hasher.finish(), || lasting.group())
    }

    /// What all counters of a policy share, since it was last reset for everybody.
    #[inline]
    pub fn family(&self, policy: &Policy) -> u64 {
        let epoch = self.resets.epoch(&policy.name).unwrap_or(Time::ZERO);
        policy.family ^ epoch.micros() as u64
    }

    /// The same for good, which is what tickets carry: whatever is reset between a check and its
    /// settle, the settle finds the key that counts.
    pub fn lasting(&self, policy: &str, parts: &Parts<'_, '_>) -> Key {
        let mut hasher = self.digester.start(Domain::Cell);
        if planted(Bug::KeyJoined) {
            let values: Vec<&str> = parts.iter().map(|(_, value)| &**value).collect();
            return hasher.part(policy.as_bytes()).part(values.join(":").as_bytes()).finish();
        }
        hasher.part(self.namespace.as_bytes()).part(policy.as_bytes());
        if let Some(gate) = self.unlisted {
            hasher.part(b"").part(gate.as_bytes());
        }
        for (attribute, value) in parts {
            hasher.part(attribute.as_bytes()).part(value.as_bytes());
        }
        let value = self.spread.value_in(parts);
        self.spread.place(hasher.finish(), || self.group(value))
    }

    /// The key of a check's reference, on the server of its rows.
    pub fn reference(&self, reference: &str, row: Key) -> Key {
        self.spread.place(self.bare_reference(reference), || row.group())
    }

    /// The same, found again by the subject of the check.
    pub fn find_reference(
        &self,
        catalog: &Catalog,
        reference: &str,
        subject: &Subject<'_>,
    ) -> Result<Key, Refusal> {
        let value = self.spread.value_of(catalog, subject)?;
        let key = self.bare_reference(reference);
        Ok(self.spread.place(key, || self.group(value.as_deref())))
    }

    /// The key of a ticket's settled-marker, on the server of its rows.
    pub fn mark(&self, id: u128, row: Key) -> Key {
        let mut hasher = self.digester.start(Domain::Ticket);
        let key = hasher.part(self.namespace.as_bytes()).part(&id.to_le_bytes()).finish();
        self.spread.place(key, || row.group())
    }

    fn bare_reference(&self, reference: &str) -> Key {
        let mut hasher = self.digester.start(Domain::Ref);
        hasher.part(self.namespace.as_bytes()).part(reference.as_bytes()).finish()
    }

    /// The keys that one server has: those of the namespace, or of one value in it.
    fn group(&self, value: Option<&str>) -> u16 {
        let mut hasher = self.digester.start(Domain::Group);
        hasher.part(self.namespace.as_bytes());
        value.into_iter().for_each(|value| {
            hasher.part(value.as_bytes());
        });
        hasher.finish().words()[1] as u16
    }
}

/// Writes the batch of a check. `next_id` is asked only when a ticket or a lease needs one.
pub fn plan<'c, 's>(
    catalog: &'c Catalog,
    scope: &Scope<'_>,
    check: &Check<'_>,
    rows: Selection<'c, 's>,
    peek: bool,
    next_id: impl FnOnce() -> u128,
) -> Result<Plan<'c, 's>, Refusal> {
    let id = if wants_ticket(catalog, &rows) { Some(next_id()) } else { None };
    let mut batch = batch::Check { peek, ..batch::Check::default() };
    for row in &rows {
        match row.terms {
            Some(terms) => {
                let lease = id.map_or(0, lease_of);
                batch.rows.push(check_row(catalog, scope, check, row, terms, lease));
            }
            None => batch.veto |= row.mode == Mode::Enforce,
        }
    }
    let body = id.map(|id| body(catalog, scope, check, &rows, &batch.rows, id));
    if let Some(body) = &body {
        body.in_bounds()?;
        batch.remember = remember(catalog, scope, check, &rows, body);
    }
    Ok(Plan { batch: Batch::Check(batch), rows, body })
}

/// What a lease is found by. Processes count alike, so the half that tells them apart goes in: a
/// lease of another process must not be given back by this one's ticket.
pub(crate) fn lease_of(id: u128) -> u64 {
    // An odd factor keeps the counted half one to one and spreads it over all bits.
    (id >> 64) as u64 ^ (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn check_row(
    catalog: &Catalog,
    scope: &Scope<'_>,
    check: &Check<'_>,
    row: &Selected<'_, '_>,
    terms: &Terms,
    lease: u64,
) -> CheckRow {
    let policy = catalog.policy(row.policy);
    CheckRow {
        key: scope.key(&policy.name, &row.parts),
        family: scope.family(policy),
        limit: terms.limit.clone(),
        held: held(policy, terms, check.cost),
        penalty: terms.block,
        shadow: row.mode == Mode::Shadow,
        count_denied: policy.count_denied,
        lease,
    }
}

/// Units to hold: a lease is one, and where nothing is counted nothing is held.
pub fn held(policy: &Policy, terms: &Terms, requested: Option<i64>) -> i64 {
    match terms.limit {
        Limit::Inflight(_) => 1,
        Limit::Unlimited => 0,
        _ => terms.cost.held(requested, policy.reserve),
    }
}

/// Whether something in the gate happens at or after settle.
fn wants_ticket(catalog: &Catalog, rows: &Selection<'_, '_>) -> bool {
    let wants = |row: &Selected<'_, '_>| {
        row.terms.is_some_and(|terms| catalog.policy(row.policy).wants_ticket(terms))
    };
    rows.iter().any(wants)
}

/// What a ticket of this check says.
fn body(
    catalog: &Catalog,
    scope: &Scope<'_>,
    check: &Check<'_>,
    rows: &Selection<'_, '_>,
    planned: &[CheckRow],
    id: u128,
) -> Box<Body> {
    let counted =
        || rows.iter().filter(|row| has_terms(row)).map(|row| (catalog.policy(row.policy), row));
    let hold = counted().map(|(policy, _)| policy.hold).fold(Span::ZERO, Span::max);
    let rows = counted().zip(planned).map(|((policy, row), planned)| TicketRow {
        key: lasting_of(scope, policy, row, planned),
        parts: named(catalog, scope.digester, &row.parts),
        ..ticket_row(policy, row, planned)
    });
    Box::new(Body {
        id,
        gate: check.gate.to_owned(),
        unlisted: scope.unlisted.is_some(),
        local: false,
        hold,
        reference: check
            .reference
            .zip(planned.first())
            .map(|(reference, row)| scope.reference(reference, row.key)),
        rows: rows.collect(),
        attributes: attributes_read(catalog, scope, counted().map(|(policy, _)| policy), check),
    })
}

/// Usually the key itself: what was never reset has only one.
fn lasting_of(
    scope: &Scope<'_>,
    policy: &Policy,
    row: &Selected<'_, '_>,
    planned: &CheckRow,
) -> Key {
    match scope.resets.epoch(&policy.name) {
        None => planned.key,
        Some(_) => scope.lasting(&policy.name, &row.parts),
    }
}

fn ticket_row(policy: &Policy, row: &Selected<'_, '_>, planned: &CheckRow) -> TicketRow {
    TicketRow {
        policy: policy.name.to_string(),
        tier: row.tier.and_then(|place| Some(policy.tiers.get(usize::from(place))?.id)),
        key: planned.key,
        held: planned.held,
        shadow: planned.shadow,
        parts: Vec::new(),
    }
}

/// Key parts as they may be shown: private values as pseudonyms.
pub fn named(
    catalog: &Catalog,
    digester: &Digester,
    parts: &Parts<'_, '_>,
) -> Vec<(String, String)> {
    let named = parts.iter().map(|(name, value)| {
        let private = catalog.is_private(name);
        let shown = if private { digester.pseudonym(name, value) } else { value.to_string() };
        ((*name).to_owned(), shown)
    });
    named.collect()
}

/// The attributes that ban conditions read; private ones are read as pseudonyms.
fn attributes_read<'p>(
    catalog: &Catalog,
    scope: &Scope<'_>,
    policies: impl Iterator<Item = &'p Policy>,
    check: &Check<'_>,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let names = policies.flat_map(|policy| &policy.bans).flat_map(|ban| ban.when.attributes());
    for name in names {
        let known = found.iter().any(|(other, _)| **other == **name);
        if let Some(raw) = check.subject.get(name).filter(|_| !known) {
            let value = crate::select::normalise(catalog, name, raw).unwrap_or_default();
            let parts = Parts::from_iter([(&**name, value)]);
            found.extend(named(catalog, scope.digester, &parts));
        }
    }
    found
}

fn remember(
    catalog: &Catalog,
    scope: &Scope<'_>,
    check: &Check<'_>,
    rows: &Selection<'_, '_>,
    body: &Body,
) -> Option<Box<batch::Remember>> {
    let spans = rows.iter().map(|row| catalog.policy(row.policy).remember);
    let (reference, first) = (check.reference?, body.rows.first()?);
    Some(Box::new(batch::Remember {
        key: scope.reference(reference, first.key),
        owner: scope.mark(body.id, first.key),
        ticket: body.to_bytes().into_boxed_slice(),
        span: spans.fold(Span::ZERO, Span::max),
    }))
}

/// Row replies line up with the selected rows that have terms.
pub(crate) fn has_terms(row: &Selected<'_, '_>) -> bool {
    row.terms.is_some()
}

/// A short list of keys, for the calls that act on them.
pub type Keys = SmallVec<[Key; 2]>;
