//! Warns of gates whose tickets come near their maximum size: a check with long values would be
//! refused.

use super::section::Sections;
use crate::catalog::{AttributeKind, Catalog, Gate};
use crate::digest::{Key, PSEUDONYM_CHARS};
use crate::located::{Report, SourceLocation};
use crate::policy::{KeySpec, Name, Policy};
use crate::request::{COST_MAX, VALUE_BYTES_MAX};
use crate::ticket::{TICKET_BYTES_MAX, TicketBody, TicketRow};
use crate::time::Span;

/// Values of this many bytes must fit: longer ones are rare.
const VALUE_BYTES_EXPECTED: usize = 64;
/// The longest normal form of an address, and of a taxpayer number.
const ADDRESS_BYTES: usize = 43;
const CPF_CNPJ_BYTES: usize = 14;

/// Reports the gates whose tickets are too large for values of [`VALUE_BYTES_EXPECTED`]. Every
/// policy is a gate of its own.
pub(super) fn warn_of_large_tickets(
    report: &mut Report,
    sections: &Sections<'_>,
    catalog: &Catalog,
) {
    for section in ["policy", "gate"] {
        for (_, node) in sections.all(section) {
            for (key, _) in node.entries(report, "named tables").into_iter().flatten() {
                let Some(gate) = catalog.gates.get(key.text) else { continue };
                // A declared gate replaces that of the policy with its name.
                if section == "gate" || gate.policies.len() == 1 {
                    check(report, key.location, catalog, gate);
                }
            }
        }
    }
}

fn check(report: &mut Report, location: SourceLocation, catalog: &Catalog, gate: &Gate) {
    let fits = |bytes: usize| worst_ticket(catalog, gate, bytes).to_bytes_in_bounds().is_ok();
    if !has_tickets(catalog, gate) || fits(VALUE_BYTES_EXPECTED) {
        return;
    }
    let longest = (0..VALUE_BYTES_EXPECTED).rev().find(|bytes| fits(*bytes));
    let message = match longest {
        Some(longest) => format!(
            "a check of this gate is refused if its values have more than {longest} bytes: its \
             ticket would have more than {TICKET_BYTES_MAX}"
        ),
        None => format!("every ticket of this gate has more than {TICKET_BYTES_MAX} bytes"),
    };
    let fix = "count by fewer attributes, make long ones private, or split the gate";
    report.warn("large-tickets", location, message, fix);
}

/// Whether checks of a gate may have a ticket.
fn has_tickets(catalog: &Catalog, gate: &Gate) -> bool {
    let policies = gate.policies.iter().flat_map(|id| catalog.fallback_chain(*id));
    let terms = |policy: &Policy| {
        let mut terms = policy.base.iter().chain(policy.tiers.iter().map(|tier| &tier.terms));
        terms.any(|terms| policy.needs_ticket(terms))
    };
    policies.into_iter().any(terms)
}

/// The largest ticket of a gate, with free values of this many bytes.
fn worst_ticket(catalog: &Catalog, gate: &Gate, bytes: usize) -> TicketBody {
    // Of a policy and those that replace it, one applies: the one with the longest texts. The
    // numbers in rows hardly differ in size.
    let chosen = gate.policies.iter().filter_map(|id| {
        let chain = catalog.fallback_chain(*id);
        let with_rows = chain.map(|policy| (policy, worst_rows(catalog, policy, bytes)));
        with_rows.max_by_key(|(_, rows)| rows.iter().map(text_bytes).sum::<usize>())
    });
    let (policies, rows): (Vec<&Policy>, Vec<Vec<TicketRow>>) = chosen.unzip();
    let bans = policies.iter().flat_map(|policy| &policy.bans);
    let mut read: Vec<&Name> = bans.flat_map(|ban| ban.when.attributes()).collect();
    let weights = policies.iter().flat_map(|policy| policy.weights());
    read.extend(weights.map(|weights| &weights.by));
    read.sort();
    read.dedup();
    TicketBody {
        id: u128::MAX,
        gate: gate.name.to_string(),
        unlisted: false,
        local: false,
        hold: policies.iter().map(|policy| policy.hold).fold(Span::ZERO, Span::max),
        reference: Some(Key::from_bytes([0; 16])),
        rows: rows.into_iter().flatten().collect(),
        attributes: read.into_iter().map(|name| pair(catalog, name, bytes)).collect(),
    }
}

/// The largest rows of a policy.
fn worst_rows(catalog: &Catalog, policy: &Policy, bytes: usize) -> Vec<TicketRow> {
    match &policy.key_spec {
        KeySpec::By(parts) => {
            // Of several attributes the one that takes the most bytes.
            let size = |name: &&Name| name.len() + value_bytes(catalog, name, bytes);
            let names = parts.iter().filter_map(|part| part.iter().max_by_key(size));
            vec![row(policy, names.map(|name| pair(catalog, name, bytes)).collect())]
        }
        KeySpec::Each(names) => {
            names.iter().map(|name| row(policy, vec![pair(catalog, name, bytes)])).collect()
        }
    }
}

fn text_bytes(row: &TicketRow) -> usize {
    let parts = row.parts.iter().map(|(name, value)| name.len() + value.len());
    size_of::<Key>() + row.policy.len() + parts.sum::<usize>()
}

fn pair(catalog: &Catalog, name: &Name, bytes: usize) -> (String, String) {
    (name.to_string(), "x".repeat(value_bytes(catalog, name, bytes)))
}

fn row(policy: &Policy, parts: Vec<(String, String)>) -> TicketRow {
    let has_tiers = !policy.tiers.is_empty();
    TicketRow {
        policy: policy.name.to_string(),
        tier: has_tiers.then_some(u32::MAX),
        own_counter: has_tiers,
        key: Key::from_bytes([0; 16]),
        held: COST_MAX,
        shadow: false,
        each: false,
        parts,
    }
}

/// The most bytes of an attribute's value in a ticket, if free values have `bytes`.
fn value_bytes(catalog: &Catalog, name: &str, bytes: usize) -> usize {
    if catalog.is_private(name) {
        return PSEUDONYM_CHARS;
    }
    match catalog.attribute_kind(name) {
        AttributeKind::Ip => ADDRESS_BYTES,
        AttributeKind::CpfCnpj | AttributeKind::CheckedCpfCnpj => CPF_CNPJ_BYTES,
        AttributeKind::Text | AttributeKind::Caseless | AttributeKind::PixKey => {
            bytes.min(VALUE_BYTES_MAX)
        }
    }
}
