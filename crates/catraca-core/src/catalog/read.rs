//! Reads a catalog from TOML text and reports every mistake in it at once.
//!
//! Each section has one reader in this folder. A reader returns a validated value, or reports an
//! error and lets the other readers continue; a catalog is returned only if there was no error.
//! Must not do I/O: the caller passes functions that load included files and look variables up.

mod attribute;
mod ban;
mod block;
mod body_cost;
mod bounds;
mod feature;
mod gate;
mod include;
mod key_parts;
mod limit;
mod lists;
mod locks;
mod network;
mod otherwise_chain;
mod policy;
mod policy_schema;
mod price;
mod process_sections;
mod route;
mod route_cost;
mod route_gate;
mod route_pattern;
mod route_source;
mod scalar;
mod schema;
mod section;
mod settle_section;
mod shard_by;
mod terms;
mod ticket_size;
mod tier;
mod upstream;
mod value;
mod variables;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeTable;

use self::feature::FEATURE_CODES;
use self::include::File;
use self::otherwise_chain::PolicyIds;
use self::variables::VariableSubstitution;
use super::{Attribute, CODES, Catalog};
use crate::lists::Lists;
use crate::located::{Diagnostic, Diagnostics, Report, syntax_recovery};
use crate::policy::{Name, PolicyId};

pub use crate::located::names::{NAME_MAX, nearest};
pub use crate::located::{DIAGNOSTICS_MAX, SourceFile};
pub use attribute::AttributeTable;
pub(super) use attribute::KINDS;
pub(super) use gate::UNLISTED;
pub use include::IncludedFile;
pub use lists::ended_entries;
pub(super) use network::{ENCODED_SLASHES, LANGUAGES, PATH_CASES};
pub use policy::{HOLD_DEFAULT, HOLD_DEFAULT_WITHOUT_LIMIT};
pub(super) use policy::{MODES, ON_FAILURE, ON_MISSING};
pub use process_sections::{IgnoreProcessSections, ProcessSections};
pub use schema::CATALOG;
pub use section::Sections;
pub use shard_by::SHARD_BY;
pub use variables::VariableLookup;

pub use bounds::{
    BANS_MAX, BODY_BYTES_MAX, CATALOG_BYTES_MAX, CONDITION_DEPTH_MAX, CONDITION_MAX, FILES_MAX,
    GATE_POLICIES_MAX, HOLD_MAX, INCLUDE_DEPTH_MAX, MESSAGE_MAX, PARTS_MAX, POLICIES_MAX,
    REMEMBER_MAX, ROUTES_MAX, SEGMENTS_MAX, TIERS_MAX, UNITS_MAX, UPSTREAMS_MAX, VARIABLE_MAX,
    WINDOWS_MAX,
};

/// Sections whose tables have names, which must differ.
const NAMED_SECTIONS: [&str; 2] = ["policy", "gate"];

/// A catalog without errors, and its warnings.
#[derive(Clone, Debug)]
pub struct ParsedCatalog {
    /// The catalog.
    pub catalog: Catalog,
    /// Probable mistakes, sorted by file and position.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a catalog. `load` returns the text of an included file by its name in the catalog, and
/// recognises a file that was already read under another name. `variable` returns the value of a
/// variable such as `${NAME}`. Sections that configure a process are not checked.
pub fn read(
    root_name: &str,
    root_text: &str,
    load: &mut dyn FnMut(&str) -> Result<IncludedFile, String>,
    variable: VariableLookup<'_>,
) -> Result<ParsedCatalog, Diagnostics> {
    read_with(root_name, root_text, load, variable, &mut IgnoreProcessSections)
}

/// Like [`read`], and lets the owner of the process sections read them. Its diagnostics are among
/// those of the catalog.
pub fn read_with(
    root_name: &str,
    root_text: &str,
    load: &mut dyn FnMut(&str) -> Result<IncludedFile, String>,
    variable: VariableLookup<'_>,
    process: &mut dyn ProcessSections,
) -> Result<ParsedCatalog, Diagnostics> {
    let mut report = Report::with_codes(&[&CODES, &FEATURE_CODES, process.codes()]);
    let files = include::load_files(root_name, root_text, load, &mut report);
    let sources: Vec<_> = files.iter().map(File::source).collect();
    let numbered = sources.iter().enumerate();
    let texts: Vec<_> = numbered
        .map(|(file, source)| {
            syntax_recovery::recover(&mut report, file, source.text, &NAMED_SECTIONS)
        })
        .collect();
    let mut substitution = VariableSubstitution::new(variable);
    let mut trees: Vec<_> = texts.iter().map(|text| DeTable::parse_recoverable(text).0).collect();
    for (file, tree) in trees.iter_mut().enumerate() {
        substitution.substitute_file(&mut report, file, tree.get_mut());
    }
    let revision = revision(&sources, &substitution.used);
    let catalog = assemble(&mut report, &trees, revision, process);
    let refused = report.has_errors();
    let all = report.finish(&sources);
    match catalog.filter(|_| !refused) {
        Some(catalog) => Ok(ParsedCatalog { catalog, warnings: all }),
        None => Err(Diagnostics { all }),
    }
}

/// Reads every section, each after the sections that its reader depends on.
fn assemble<'t>(
    report: &mut Report,
    trees: &'t [Spanned<DeTable<'t>>],
    revision: Name,
    process: &mut dyn ProcessSections,
) -> Option<Catalog> {
    let sections = Sections::collect(report, trees);
    let network = network::read(report, &sections);
    let attributes = attribute::read(report, &sections, network.ipv6_prefix);
    process.read(report, &sections, &attributes);
    let shard_by = shard_by::read(report, &sections);
    let locks = locks::read(report, &sections);
    let settle = settle_section::read(report, &sections);
    let allowlist = lists::read(report, &sections, &attributes, "allowlist");
    let blocklist = lists::read(report, &sections, &attributes, "blocklist");
    let mut drafts = read_policies(report, &sections, &attributes);
    let ids = policy_ids(&drafts);
    otherwise_chain::link(report, &mut drafts, &ids);
    let gates = gate::read(report, &sections, &ids);
    let default = gate::default(report, &sections, &ids);
    let denies_unlisted = gate::denies_unlisted(report, &sections);
    let routes = route::read(report, &sections, &attributes, &gates, network.path_case);
    let language = network::language(report, &sections);
    gate::report_unsharded(report, &drafts, &gates, shard_by.as_ref());
    let policies: Vec<_> = drafts.into_iter().map(|draft| draft.policy).collect::<Option<_>>()?;
    let rule_cost = gate::rule_cost(&gates, &policies);
    let cost_paths = body_cost::all_paths(&policies);
    let kind = |(name, attribute): (&Name, &Attribute)| (name.clone(), attribute.kind);
    let attribute_kinds = attributes.by_name.iter().map(kind).collect();
    let catalog = Catalog {
        revision,
        policies,
        gates: gates.all,
        gate_names: gates.declared,
        default,
        denies_unlisted,
        attributes: attributes.by_name,
        attribute_kinds,
        facts: attributes.facts,
        lists: Lists::new(allowlist.clone(), blocklist.clone()),
        allowlist,
        blocklist,
        routes,
        network,
        language,
        locks,
        settle,
        cost_paths,
        rule_cost,
        shard_by,
    };
    if !report.has_errors() {
        ticket_size::warn_of_large_tickets(report, &sections, &catalog);
    }
    Some(catalog)
}

fn read_policies<'t>(
    report: &mut Report,
    sections: &Sections<'t>,
    attributes: &AttributeTable,
) -> Vec<policy::PolicyDraft<'t>> {
    let named = sections.named_tables(report, "policy");
    if let Some((key, _)) = named.get(POLICIES_MAX) {
        let message = format!("{} policies are too many", named.len());
        let fix = format!("keep at most {POLICIES_MAX}: tiers and facts tell callers apart");
        report.error("too-many-policies", key.location, message, fix);
    }
    let bounded = named.into_iter().take(POLICIES_MAX);
    bounded.map(|(key, node)| policy::read(report, attributes, key, node)).collect()
}

fn policy_ids<'t>(drafts: &[policy::PolicyDraft<'t>]) -> PolicyIds<'t> {
    // There are at most `POLICIES_MAX` drafts, so every index fits in 16 bits.
    let numbered = (0_u16..).zip(drafts);
    numbered.map(|(at, draft)| (draft.key.text, PolicyId(at))).collect()
}

/// A hash of all texts and of the variables that decisions depend on. Each is preceded by its
/// length, so that moving a text between two files changes the hash. File names are left out: the
/// same catalog in another folder has the same revision.
fn revision(sources: &[SourceFile<'_>], variables: &BTreeMap<String, String>) -> Name {
    let mut hasher = blake3::Hasher::new();
    let texts = sources.iter().map(|source| source.text);
    let variables = variables.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    for text in texts.chain(variables) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].into()
}
