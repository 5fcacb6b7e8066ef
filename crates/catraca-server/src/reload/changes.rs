//! The differences between two catalogs as text, for the audit log and the response of a reload.
//!
//! Settings of the process, lists and facts may hold secrets or personal data: they are named, but
//! their values are not shown.

use std::collections::BTreeSet;
use std::fmt::Debug;

use catraca::Catalog;
use catraca::app::OrphanedBlocks;
use catraca::core::catalog::{AttributeKind, Network};
use catraca::core::policy::{Name, PolicyId, Terms};
use catraca::records::RecordsError;

use super::policy_changes::{PolicyIn, add_change, compare};
use crate::render::count_noun;

/// The most changes that are listed.
const CHANGES_MAX: usize = 100;

/// Every change from one catalog to the next, and those of the process sections; above
/// `CHANGES_MAX`, the last one counts the rest.
pub fn changes(before: &Catalog, after: &Catalog, section_changes: Vec<String>) -> Vec<String> {
    let mut changes = Vec::new();
    policies(before, after, &mut changes);
    gates(before, after, &mut changes);
    let default = |catalog: &Catalog| catalog.default.map(|id| name(catalog, id));
    add_change(&mut changes, "default", or_none(default(before)), or_none(default(after)));
    attributes(before, after, &mut changes);
    network(&before.network, &after.network, &mut changes);
    for (what, differs) in [
        ("routes", before.routes != after.routes),
        ("facts", before.facts != after.facts),
        ("allowlist", debug_text(&before.allowlist) != debug_text(&after.allowlist)),
        ("blocklist", debug_text(&before.blocklist) != debug_text(&after.blocklist)),
        ("locks", before.locks != after.locks),
        ("language", debug_text(&before.language) != debug_text(&after.language)),
    ] {
        changes.extend(differs.then(|| format!("{what} changed")));
    }
    changes.extend(section_changes);
    if changes.len() > CHANGES_MAX {
        let rest = changes.len() - (CHANGES_MAX - 1);
        changes.truncate(CHANGES_MAX - 1);
        changes.push(format!("and {rest} more"));
    }
    changes
}

/// The changes to blocks, list entries and facts, for the log, the audit and the response.
pub fn orphans_texts(orphaned: &Result<OrphanedBlocks, RecordsError>) -> Vec<String> {
    let entries = orphaned.as_ref().ok().and_then(orphaned_entries_text);
    orphaned_blocks_text(orphaned).into_iter().chain(entries).collect()
}

fn orphaned_entries_text(orphaned: &OrphanedBlocks) -> Option<String> {
    let OrphanedBlocks { entries, facts, .. } = orphaned;
    (entries + facts > 0).then(|| {
        format!(
            "{} and {} may match no caller: their values are normalised differently, and are \
             known only as pseudonyms, or no caller can have them",
            count_noun(*entries as usize, "list entry", "list entries"),
            count_noun(*facts as usize, "fact", "facts")
        )
    })
}

fn orphaned_blocks_text(orphaned: &Result<OrphanedBlocks, RecordsError>) -> Option<String> {
    let orphaned = match orphaned {
        Ok(orphaned) => orphaned,
        Err(error) => {
            return Some(format!(
                "blocks in force may be orphaned: the records cannot be read: {error}"
            ));
        }
    };
    let blocks = match orphaned.count {
        0 => return None,
        1 => "1 block in force is orphaned, and denies no request".to_owned(),
        count => format!("{count} blocks in force are orphaned, and deny no request"),
    };
    let policies = orphaned.first.iter().map(|(row, why)| format!("{}: {why}", row.subject.policy));
    let mut policies: Vec<String> = policies.collect();
    policies.dedup();
    Some(format!("{blocks} ({})", policies.join("; ")))
}

fn policies(before: &Catalog, after: &Catalog, changes: &mut Vec<String>) {
    for policy in &before.policies {
        if after.find(&policy.name).is_none() {
            changes.push(format!("policy {} removed", policy.name));
        }
    }
    for policy in &after.policies {
        match before.find(&policy.name) {
            None => changes.push(format!("policy {} added: {}", policy.name, terms(&policy.base))),
            Some((_, old)) => {
                let old = PolicyIn { catalog: before, policy: old };
                compare(&old, &PolicyIn { catalog: after, policy }, changes);
            }
        }
    }
}

fn gates(before: &Catalog, after: &Catalog, changes: &mut Vec<String>) {
    let names: BTreeSet<&str> =
        before.gate_names.iter().chain(&after.gate_names).map(|name| &**name).collect();
    for gate in names {
        let old = or_none(gate_policies(before, gate));
        let new = or_none(gate_policies(after, gate));
        add_change(changes, &format!("gate {gate}"), old, new);
    }
}

fn attributes(before: &Catalog, after: &Catalog, changes: &mut Vec<String>) {
    let names: BTreeSet<&Name> = before.attributes.keys().chain(after.attributes.keys()).collect();
    for name in names {
        let old = before.attributes.get(name).cloned().unwrap_or_default();
        let new = after.attributes.get(name).cloned().unwrap_or_default();
        let what = |field: &str| format!("attribute {name} {field}");
        let [old_kind, new_kind] = [&old, &new].map(|found| kind_text(found.kind).to_owned());
        add_change(changes, &what("kind"), old_kind, new_kind);
        let [old_private, new_private] = [&old, &new].map(|found| found.private.to_string());
        add_change(changes, &what("private"), old_private, new_private);
    }
}

/// A kind as the catalog writes it.
fn kind_text(kind: AttributeKind) -> &'static str {
    match kind {
        AttributeKind::Text => "text",
        AttributeKind::Caseless => "caseless",
        AttributeKind::Ip => "ip",
        AttributeKind::CpfCnpj => "cpf_cnpj",
        AttributeKind::CheckedCpfCnpj => "cpf_cnpj with check_digits",
        AttributeKind::PixKey => "pix_key",
    }
}

fn network(before: &Network, after: &Network, changes: &mut Vec<String>) {
    let proxies = |network: &Network| {
        let ranges = network.trusted_proxies.iter().map(ToString::to_string);
        let ranges = ranges.collect::<Vec<String>>().join(", ");
        or_none(Some(ranges).filter(|ranges| !ranges.is_empty()))
    };
    let fields = |network: &Network| {
        [
            ("ipv6_prefix", network.ipv6_prefix.to_string()),
            ("trusted_proxies", proxies(network)),
            ("path_case", debug_text(&network.path_case).to_lowercase()),
            ("encoded_slash", debug_text(&network.encoded_slash).to_lowercase()),
        ]
    };
    for ((name, old), (_, new)) in fields(before).into_iter().zip(fields(after)) {
        add_change(changes, &format!("network {name}"), old, new);
    }
}

/// The policies of a declared gate; none if the catalog does not declare it.
fn gate_policies(catalog: &Catalog, gate: &str) -> Option<String> {
    let declared = catalog.gate_names.iter().any(|name| **name == *gate);
    let gate = catalog.gates.get(gate).filter(|_| declared)?;
    let names: Vec<String> = gate.policies.iter().map(|id| name(catalog, *id)).collect();
    Some(names.join(", "))
}

fn or_none(name: Option<String>) -> String {
    name.unwrap_or_else(|| "none".to_owned())
}

fn name(catalog: &Catalog, id: PolicyId) -> String {
    catalog.policy(id).name.to_string()
}

fn terms(terms: &Option<Terms>) -> String {
    terms.as_ref().map_or_else(|| "by tier".to_owned(), |terms| terms.describe_limit())
}

/// A value as text, only to be compared: most of these types have no `PartialEq`.
fn debug_text(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const BEFORE: &str = "default = 'a'\n\
        [policy.a]\nby = ['ip']\nwindow = '10 per 1h'\n\
        [policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
        [gate.g]\npolicies = ['a', 'b']\n";

    fn changes_to(after: &str) -> Vec<String> {
        let before = config::parse(BEFORE).unwrap();
        let after = config::parse(after).unwrap();
        let sections = after.process.changes(&before.process);
        changes(&before.catalog, &after.catalog, sections)
    }

    #[test]
    fn equal_catalogs_have_no_changes_and_every_difference_is_listed() {
        assert_eq!(changes_to(BEFORE), Vec::<String>::new());
        assert_eq!(changes_to(&format!("# only a comment\n{BEFORE}")), Vec::<String>::new());
        let after = BEFORE.replace("10 per 1h", "12 per 1h").replace("'a', 'b'", "'b'");
        assert_eq!(
            changes_to(&after),
            ["policy a limit: window 10 per 1h -> window 12 per 1h", "gate g: a, b -> b"]
        );
        let after = "[policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
                     message = 'wait'\n[policy.c]\nby = []\nfixed = '3 per 1d'\n\
                     [auth]\nmetrics = 'open'\n";
        let changes = changes_to(after);
        assert_eq!(changes[0], "policy a removed");
        assert_eq!(changes[1], "policy b message: none -> wait");
        assert!(changes[2].starts_with("policy c added: "), "{changes:?}");
        assert_eq!(changes[3], "gate g: a, b -> none");
        assert_eq!(changes[4], "default: a -> none");
        assert_eq!(changes[5], "[auth] metrics changed");
        assert!(!changes.join("\n").contains("open"));
    }

    /// Regression: the dry run said "attributes changed" and "network changed".
    #[test]
    fn changes_of_attributes_and_the_network_have_their_fields_and_values() {
        let more = "[attribute.user]\nkind = 'caseless'\nprivate = true\n\
                    [network]\nipv6_prefix = 48\ntrusted_proxies = ['10.0.0.0/8']\n";
        assert_eq!(
            changes_to(&format!("{BEFORE}{more}")),
            [
                "attribute user kind: text -> caseless",
                "attribute user private: false -> true",
                "network ipv6_prefix: 64 -> 48",
                "network trusted_proxies: none -> 10.0.0.0/8",
            ]
        );
    }

    /// Regression: a change of a tier or a ban was reported as "changed in other terms".
    #[test]
    fn tiers_and_bans_are_compared_field_by_field() {
        let catalog = |tiers: &str, bans: &str| {
            format!(
                "[attribute.customer]\nprivate = true\n\
                 [policy.api]\nby = ['customer']\nwindow = '1 per 1h'\n\
                 tier = [{tiers}]\nban = [{bans}]\n"
            )
        };
        let gold =
            |limit: u32| format!("{{ when = {{ plan = 'gold' }}, window = '{limit} per 1h' }}");
        let ana = "{ when = { customer = 'ana' }, window = '7 per 1h', block = '5m' }";
        let scan =
            |span: &str| format!("{{ when = 'status == 404', for = '{span}', reason = 'scan' }}");
        let fraud = "{ when = 'status == 403', for = '1d', reason = 'fraud', after = '2 per 1m' }";
        let compare = |before: String, after: String| {
            let before = config::parse(&before).unwrap();
            let after = config::parse(&after).unwrap();
            changes(&before.catalog, &after.catalog, Vec::new())
        };
        let before = catalog(&format!("{}, {ana}", gold(3)), &scan("1h"));
        let after = catalog(&gold(4), &format!("{}, {fraud}", scan("2h")));
        assert_eq!(
            compare(before.clone(), after),
            [
                "policy api tier (customer = a private value) removed",
                "policy api tier (plan = gold) limit: window 3 per 1h -> window 4 per 1h",
                "policy api ban (scan) for: 1h -> 2h",
                "policy api ban (fraud) added: when status == 403, for 24h, after 2 per 1m",
            ]
        );
        let moved = catalog(&format!("{ana}, {}", gold(3)), &scan("1h"));
        let order = "policy api order of tiers: tier (plan = gold), tier (customer = a private \
                     value) -> tier (customer = a private value), tier (plan = gold)";
        assert_eq!(compare(before.clone(), moved), [order]);
        assert_eq!(compare(before.clone(), before), Vec::<String>::new());
    }

    /// Regression: `[auth] changed` did not name the key.
    #[test]
    fn keys_are_named_but_never_shown() {
        let key = |name: &str, digit: &str, role: &str| {
            let hash = digit.repeat(64);
            format!("[[auth.key]]\nname = '{name}'\nhash = 'blake3:{hash}'\nrole = '{role}'\n")
        };
        let before = [key("ci", "a", "check"), key("ana", "b", "admin"), key("rui", "c", "read")];
        let after = [key("ci", "d", "check"), key("eva", "e", "admin"), key("rui", "c", "support")];
        let [before, after] = [before, after].map(|keys| config::parse(&keys.concat()).unwrap());
        let changes = after.process.changes(&before.process);
        assert_eq!(
            changes,
            [
                "[auth] key ana removed",
                "[auth] key ci changed: hash",
                "[auth] key eva added: role admin",
                "[auth] key rui changed: role read -> support",
            ]
        );
    }

    #[test]
    fn a_flood_of_changes_is_cut_and_the_rest_counted() {
        let policy = |n| format!("[policy.p{n}]\nby = []\nwindow = '1 per 1h'\n");
        let many: String = (0..200).map(policy).collect();
        let changes = changes_to(&format!("{BEFORE}{many}"));
        assert_eq!((changes.len(), changes[99].as_str()), (100, "and 101 more"));
    }
}
