//! Plans a check: turns the selected policies into one batch, the keys of its cells, and the body
//! of its ticket.
//!
//! A plan depends only on its arguments. In particular, the ticket id is an argument: core creates
//! no random numbers.

use crate::batch::{self, Batch, CheckRow};
use crate::catalog::Catalog;
use crate::digest::{Digester, Domain, Key};
use crate::limit::Limit;
use crate::policy::{KeySpec, Mode, Name, Policy, Terms};
use crate::policy_epochs::PolicyEpochs;
use crate::refusal::Refusal;
use crate::request::{Check, DEFAULT_NAMESPACE};
use crate::select::{KeyParts, SelectedPolicy, Selection, normalise_value};
use crate::sharding::Sharding;
use crate::subject::Subject;
use crate::ticket::{TicketBody, TicketRow};
use crate::time::{Span, Time};

/// The batch of a check, with what `conclude` needs to interpret the reply.
#[derive(Clone, Debug)]
pub struct Plan<'c, 's> {
    /// The batch for the store.
    pub batch: Batch,
    /// The selected policies, in gate order. Those without terms have no row in the batch.
    pub rows: Selection<'c, 's>,
    /// The body of the ticket, if something of this check can be settled later.
    pub body: Option<Box<TicketBody>>,
}

/// Everything besides policy and subject that determines the keys of cells.
#[derive(Clone, Copy, Debug)]
pub struct KeyScope<'a> {
    /// Computes digests with the secret of the store.
    pub digester: &'a Digester,
    /// The namespace.
    pub namespace: &'a str,
    /// The requested gate, if it is not declared and the default policies apply to it. It is part
    /// of the key, so that each such gate has counters of its own.
    pub unlisted: Option<&'a str>,
    /// How keys are sharded over the servers of a store.
    pub sharding: &'a Sharding,
    /// The epoch of each policy that was reset for all keys.
    pub epochs: &'a PolicyEpochs,
}

impl KeyScope<'_> {
    /// The current key of (namespace, policy, parts).
    #[inline]
    pub fn key(&self, policy: &str, parts: &KeyParts<'_, '_>) -> Key {
        self.current_key(policy, self.base_key(policy, parts))
    }

    /// The current key for a base key: the base key itself, or if the policy was reset for all
    /// keys, its digest with the epoch.
    #[inline]
    pub fn current_key(&self, policy: &str, base: Key) -> Key {
        let Some(epoch) = self.epochs.epoch(policy) else { return base };
        let mut hasher = self.digester.start(Domain::Epoch);
        hasher.part(&base.to_bytes()).part(&epoch.micros().to_le_bytes());
        // Still in the group of the base key: all keys of a decision must be on one server.
        self.assign_group(hasher.finish(), || base.group())
    }

    /// Identifies the policy since its last reset for all keys. Overflow cells are shared within
    /// it.
    #[inline]
    pub fn family(&self, policy: &Policy) -> u64 {
        let epoch = self.epochs.epoch(&policy.name).unwrap_or(Time::ZERO);
        policy.family ^ epoch.micros() as u64
    }

    /// The key without the epoch. Tickets contain this key: if the policy is reset between a check
    /// and its settle, the settle still finds the current key.
    pub fn base_key(&self, policy: &str, parts: &KeyParts<'_, '_>) -> Key {
        let mut hasher = self.digester.start(Domain::Cell);
        hasher.part(self.namespace.as_bytes()).part(policy.as_bytes());
        // An attribute name is never empty, so the empty part keeps this apart from a key part.
        if let Some(gate) = self.unlisted {
            hasher.part(b"").part(gate.as_bytes());
        }
        for (attribute, value) in parts {
            hasher.part(attribute.as_bytes()).part(value.as_bytes());
        }
        let value = self.sharding.value_of_parts(parts);
        self.assign_group(hasher.finish(), || self.group(value))
    }

    /// The key of a reference, in the shard of the rows of its check.
    pub fn reference_key(&self, reference: &str, row: Key) -> Key {
        self.assign_group(self.ungrouped_reference_key(reference), || row.group())
    }

    /// The key of a reference, computed from the subject of its check. Fails if the subject lacks
    /// the attribute by which keys are sharded.
    pub fn reference_key_of(
        &self,
        catalog: &Catalog,
        reference: &str,
        subject: &Subject<'_>,
    ) -> Result<Key, Refusal> {
        let value = self.sharding.value_of_subject(catalog, subject)?;
        let key = self.ungrouped_reference_key(reference);
        Ok(self.assign_group(key, || self.group(value.as_deref())))
    }

    /// The key of the settled-marker of a ticket, in the shard of its rows.
    pub fn marker_key(&self, id: u128, row: Key) -> Key {
        let mut hasher = self.digester.start(Domain::Ticket);
        let key = hasher.part(self.namespace.as_bytes()).part(&id.to_le_bytes()).finish();
        self.assign_group(key, || row.group())
    }

    fn ungrouped_reference_key(&self, reference: &str) -> Key {
        let mut hasher = self.digester.start(Domain::Ref);
        hasher.part(self.namespace.as_bytes()).part(reference.as_bytes()).finish()
    }

    /// The key with its group. In an unsharded store, keys of the default namespace have none: the
    /// memory store gives every other namespace its own part of each pool, and the rest is theirs.
    #[inline]
    fn assign_group(&self, key: Key, group: impl FnOnce() -> u16) -> Key {
        let has_group =
            *self.sharding != Sharding::Unsharded || self.namespace != DEFAULT_NAMESPACE;
        if has_group { key.in_group(group()) } else { key }
    }

    /// The group of keys that are on the same server: those of a namespace, or of one value of the
    /// shard attribute in it.
    fn group(&self, value: Option<&str>) -> u16 {
        group_of(self.digester, self.namespace, value)
    }
}

/// The group of all keys of a namespace, unless keys are sharded by an attribute.
pub fn namespace_group(digester: &Digester, namespace: &str) -> u16 {
    group_of(digester, namespace, None)
}

fn group_of(digester: &Digester, namespace: &str, value: Option<&str>) -> u16 {
    let mut hasher = digester.start(Domain::Group);
    hasher.part(namespace.as_bytes());
    if let Some(value) = value {
        hasher.part(value.as_bytes());
    }
    // Any 16 bits of a digest are evenly distributed.
    hasher.finish().words()[1] as u16
}

impl Plan<'_, '_> {
    /// An empty plan. Rows are selected into it, and then its batch is planned: it is too large to
    /// be copied from step to step.
    #[inline]
    pub fn new(peek: bool) -> Self {
        let batch = batch::CheckBatch { peek, ..batch::CheckBatch::default() };
        Self { batch: Batch::Check(batch), rows: Selection::new(), body: None }
    }

    /// Plans the batch of the selected rows. Calls `next_id` only for a ticket or a lease.
    pub fn plan_batch(
        &mut self,
        catalog: &Catalog,
        scope: &KeyScope<'_>,
        check: &Check<'_>,
        next_id: impl FnOnce() -> u128,
    ) -> Result<(), Refusal> {
        let Batch::Check(batch) = &mut self.batch else { return Ok(()) };
        let id = needs_ticket(catalog, &self.rows).then(next_id);
        for row in &self.rows {
            match row.terms {
                Some(terms) => {
                    // Zero is never used: an in-flight row needs a ticket, so then there is an id.
                    let lease = id.map_or(0, lease_id);
                    batch.rows.push(check_row(catalog, scope, check, row, terms, lease)?);
                }
                // A key attribute is missing and the policy denies: there is no row for the store,
                // and the other rows must not be charged.
                None => batch.already_denied |= row.mode == Mode::Enforce,
            }
        }
        if let Some(id) = id {
            let body = ticket_body(catalog, scope, check, &self.rows, &batch.rows, id)?;
            let bytes = body.to_bytes_in_bounds()?;
            batch.new_reference = new_reference(catalog, scope, check, &self.rows, &body, bytes);
            self.body = Some(body);
        }
        Ok(())
    }
}

/// The id of a lease, from the id of the check. The upper half of the check's id is random per
/// process and the lower half is a counter, so both must enter: otherwise a settle could end the
/// lease of another process.
pub(crate) fn lease_id(id: u128) -> u64 {
    // Multiplying by an odd number maps the counter one to one, and changes its high bits too.
    (id >> 64) as u64 ^ (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn check_row(
    catalog: &Catalog,
    scope: &KeyScope<'_>,
    check: &Check<'_>,
    row: &SelectedPolicy<'_, '_>,
    terms: &Terms,
    lease: u64,
) -> Result<CheckRow, Refusal> {
    let policy = catalog.policy(row.policy);
    Ok(CheckRow {
        key: scope.key(&policy.name, &row.parts),
        tier_counter: row.tier_counter,
        shared: row.shared.clone(),
        family: scope.family(policy),
        limit: terms.limit.clone(),
        held: held_units(catalog, policy, terms, check)?,
        penalty: terms.block,
        shadow: row.mode == Mode::Shadow,
        count_denied: policy.count_denied,
        lease,
        on_full: policy.on_failure,
    })
}

/// Units that the check charges before the real cost is known: one lease for in-flight limits, zero
/// without a limit. Refuses an invalid value of the attribute that weights are chosen by.
pub fn held_units(
    catalog: &Catalog,
    policy: &Policy,
    terms: &Terms,
    check: &Check<'_>,
) -> Result<i64, Refusal> {
    Ok(match terms.limit {
        Limit::Unlimited => 0,
        _ if terms.limit.takes_lease() => 1,
        _ => {
            let requested = weighted_cost(catalog, terms, check)?;
            terms.cost.units_to_hold(requested, policy.reserve)
        }
    })
}

/// The cost that a check states, weighted as that of its outcome will be.
#[inline]
fn weighted_cost(
    catalog: &Catalog,
    terms: &Terms,
    check: &Check<'_>,
) -> Result<Option<i64>, Refusal> {
    let (Some(units), Some(weights)) = (check.cost, terms.cost.weights()) else {
        return Ok(check.cost);
    };
    let raw = check.subject.get(&weights.by);
    let value = raw.map(|raw| normalise_value(catalog, &weights.by, raw)).transpose()?;
    Ok(Some(weights.weigh(units, value.as_deref())))
}

/// Whether any row can be settled or credited, so that the check needs a ticket.
fn needs_ticket(catalog: &Catalog, rows: &Selection<'_, '_>) -> bool {
    let needs_ticket = |row: &SelectedPolicy<'_, '_>| {
        row.terms.is_some_and(|terms| catalog.policy(row.policy).needs_ticket(terms))
    };
    rows.iter().any(needs_ticket)
}

fn ticket_body(
    catalog: &Catalog,
    scope: &KeyScope<'_>,
    check: &Check<'_>,
    rows: &Selection<'_, '_>,
    planned: &[CheckRow],
    id: u128,
) -> Result<Box<TicketBody>, Refusal> {
    let with_terms =
        || rows.iter().filter(|row| has_terms(row)).map(|row| (catalog.policy(row.policy), row));
    // The ticket can be settled for the longest `hold` of its policies.
    let hold = with_terms().map(|(policy, _)| policy.hold).fold(Span::ZERO, Span::max);
    let mut ticket_rows: Vec<TicketRow> = Vec::with_capacity(planned.len());
    // `planned` has no rows for policies without terms, so both have the same order.
    for ((policy, row), planned) in with_terms().zip(planned) {
        // A pseudonym takes longer than the rest of a row, and rows often count by the same value.
        let mut earlier = with_terms().zip(&ticket_rows);
        let parts = match earlier.find(|((_, other), _)| other.parts == row.parts) {
            Some((_, other)) => other.parts.clone(),
            None => display_parts(catalog, scope.digester, &row.parts),
        };
        ticket_rows.push(ticket_row(scope, policy, row, planned, parts));
    }
    let bans = with_terms().flat_map(|(policy, _)| &policy.bans);
    let weights = with_terms().filter_map(|(_, row)| row.terms?.cost.weights());
    let names = bans.flat_map(|ban| ban.when.attributes()).chain(weights.map(|own| &own.by));
    let attributes = attributes_for_settle(catalog, scope, names, check)?;
    Ok(Box::new(TicketBody {
        id,
        gate: check.gate.to_owned(),
        unlisted: scope.unlisted.is_some(),
        // Set by the engine if it decides without the shared store.
        local: false,
        hold,
        reference: check
            .reference
            .zip(planned.first())
            .map(|(reference, row)| scope.reference_key(reference, row.key)),
        rows: ticket_rows,
        attributes,
    }))
}

/// The base key of a row. For a policy that was never reset it is equal to the planned key, which
/// saves a second digest.
fn base_key_of(
    scope: &KeyScope<'_>,
    policy: &Policy,
    row: &SelectedPolicy<'_, '_>,
    planned: &CheckRow,
) -> Key {
    match scope.epochs.epoch(&policy.name) {
        None => planned.key,
        Some(_) => scope.base_key(&policy.name, &row.parts),
    }
}

fn ticket_row(
    scope: &KeyScope<'_>,
    policy: &Policy,
    row: &SelectedPolicy<'_, '_>,
    planned: &CheckRow,
    parts: Vec<(String, String)>,
) -> TicketRow {
    TicketRow {
        policy: policy.name.to_string(),
        tier: row.tier.and_then(|index| Some(policy.tiers.get(usize::from(index))?.id)),
        own_counter: planned.tier_counter.is_some(),
        key: base_key_of(scope, policy, row, planned),
        held: planned.held,
        shadow: planned.shadow,
        each: matches!(policy.key_spec, KeySpec::Each(_)),
        parts,
    }
}

/// Key parts for display: the values of private attributes as pseudonyms.
pub fn display_parts(
    catalog: &Catalog,
    digester: &Digester,
    parts: &KeyParts<'_, '_>,
) -> Vec<(String, String)> {
    let displayed = parts.iter().map(|(name, value)| {
        let private = catalog.is_private(name);
        let text = if private { digester.pseudonym(name, value) } else { value.to_string() };
        ((*name).to_owned(), text)
    });
    displayed.collect()
}

/// The attributes that ban conditions and weights read, for the ticket. The subject is not
/// available at the settle. Private values are replaced by pseudonyms. An invalid value is refused
/// as one of a key is: no condition could match it, and the ban would silently not start.
fn attributes_for_settle<'p>(
    catalog: &Catalog,
    scope: &KeyScope<'_>,
    names: impl Iterator<Item = &'p Name>,
    check: &Check<'_>,
) -> Result<Vec<(String, String)>, Refusal> {
    let mut found: Vec<(String, String)> = Vec::new();
    for name in names {
        let is_known = found.iter().any(|(other, _)| **other == **name);
        if let Some(raw) = check.subject.get(name).filter(|_| !is_known) {
            let value = normalise_value(catalog, name, raw)?;
            let parts = KeyParts::from_iter([(&**name, value)]);
            found.extend(display_parts(catalog, scope.digester, &parts));
        }
    }
    Ok(found)
}

/// The reference to store, if the check has one and can be settled.
fn new_reference(
    catalog: &Catalog,
    scope: &KeyScope<'_>,
    check: &Check<'_>,
    rows: &Selection<'_, '_>,
    body: &TicketBody,
    bytes: Vec<u8>,
) -> Option<Box<batch::NewReference>> {
    let spans = rows.iter().map(|row| catalog.policy(row.policy).remember);
    let reference = check.reference?;
    let first = body.rows.first()?;
    Some(Box::new(batch::NewReference {
        key: scope.reference_key(reference, first.key),
        owner: scope.marker_key(body.id, first.key),
        ticket: bytes.into_boxed_slice(),
        span: spans.fold(Span::ZERO, Span::max),
    }))
}

/// Whether a selected policy has a row in the batch: the rows of a reply correspond to these, in
/// order.
pub(crate) fn has_terms(row: &SelectedPolicy<'_, '_>) -> bool {
    row.terms.is_some()
}
