//! From text to catalog: parse, don't validate, and say everything that is wrong at once.
//!
//! Each section has one reader in this folder. A reader turns located text into a value that makes
//! sense, or reports why not and lets the others go on; the catalog exists only if nobody objected.
//! Must not do I/O (the caller loads included files) nor decide requests.

mod attribute;
mod ban;
mod block;
mod bounds;
mod chain;
mod damage;
mod file;
mod gate;
mod keys;
mod limit;
mod lists;
mod locks;
mod names;
mod network;
mod node;
mod pattern;
mod policy;
mod price;
mod report;
mod route;
mod scalar;
mod section;
mod settings;
mod settle;
mod shard;
mod terms;
mod tier;
mod value;
mod variables;
mod who;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeTable;

use self::chain::Ids;
use self::file::File;
use self::report::Report;
use self::section::Sections;
use self::variables::Filling;
use super::Catalog;
use super::diagnostic::{Diagnostic, Diagnostics};
use crate::lists::Lists;
use crate::policy::{Name, PolicyId};

pub use file::Loaded;
pub use variables::Variable;

pub use bounds::{
    BANS_MAX, BODY_BYTES_MAX, CATALOG_BYTES_MAX, CONDITION_DEPTH_MAX, CONDITION_MAX,
    DIAGNOSTICS_MAX, FILES_MAX, FIXED_MAX, GATE_POLICIES_MAX, HOLD_MAX, INCLUDE_DEPTH_MAX,
    KEYS_MAX, MESSAGE_MAX, NAME_MAX, PARTS_MAX, POLICIES_MAX, REMEMBER_MAX, ROUTES_MAX,
    SEGMENTS_MAX, TIERS_MAX, UNITS_MAX, VARIABLE_MAX, WINDOWS_MAX,
};

/// One file of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its name, for people.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A catalog that was read, with what somebody should look at.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The catalog.
    pub catalog: Catalog,
    /// What is probably not meant, by file and position.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a catalog. Included files are loaded by the names that the text gives them; the loader
/// knows which names are one file. `variable` says what a variable holds that a text names.
pub fn read(
    root_name: &str,
    root_text: &str,
    load: &mut dyn FnMut(&str) -> Result<Loaded, String>,
    variable: Variable<'_>,
) -> Result<Reading, Diagnostics> {
    let mut report = Report::default();
    let files = file::gather((root_name, root_text), load, &mut report);
    let sources: Vec<_> = files.iter().map(File::source).collect();
    let numbered = sources.iter().enumerate();
    let texts: Vec<_> =
        numbered.map(|(file, source)| damage::mend(&mut report, file, source.text)).collect();
    let mut filling = Filling::new(variable);
    let mut trees: Vec<_> = texts.iter().map(|text| DeTable::parse_recoverable(text).0).collect();
    for (file, tree) in trees.iter_mut().enumerate() {
        filling.file(&mut report, file, tree.get_mut());
    }
    let catalog = assemble(&mut report, &trees, revision(&sources, &filling.given));
    let refused = report.has_errors();
    let all = report.finish(&sources);
    match catalog.filter(|_| !refused) {
        Some(catalog) => Ok(Reading { catalog, warnings: all }),
        None => Err(Diagnostics { all }),
    }
}

/// The known name that was probably meant.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    names::nearest(name, known)
}

/// Reads every section; the order is that of who needs whom.
fn assemble<'t>(
    report: &mut Report,
    trees: &'t [Spanned<DeTable<'t>>],
    revision: Name,
) -> Option<Catalog> {
    let sections = Sections::gather(report, trees);
    let network = network::read(report, &sections);
    let known = attribute::read(report, &sections, network.ipv6_prefix);
    let settings = settings::read(report, &sections, &known);
    let locks = locks::read(report, &sections, &settings);
    let settle = settle::read(report, &sections);
    let allowlist = lists::read(report, &sections, &known, "allowlist");
    let blocklist = lists::read(report, &sections, &known, "blocklist");
    let mut drafts = policies(report, &sections, &known);
    let ids = ids(&drafts);
    chain::link(report, &mut drafts, &ids);
    let gates = gate::read(report, &sections, &ids);
    let default = gate::default(report, &sections, &ids);
    let routes = route::read(report, &sections, &known, &gates, network.path_case);
    let language = network::language(report, &sections);
    shard::judge(report, &drafts, &gates, &settings);
    let policies: Vec<_> = drafts.into_iter().map(|draft| draft.policy).collect::<Option<_>>()?;
    let rule_cost = gate::rule_cost(&gates, &policies);
    Some(Catalog {
        revision,
        policies,
        gates: gates.all,
        gate_names: gates.declared,
        default,
        attributes: known.attributes,
        facts: known.facts,
        lists: Lists::new(allowlist.clone(), blocklist.clone()),
        allowlist,
        blocklist,
        routes,
        network,
        language,
        locks,
        settle,
        rule_cost,
        settings,
    })
}

fn policies<'t>(
    report: &mut Report,
    sections: &Sections<'t>,
    known: &attribute::Known,
) -> Vec<policy::Draft<'t>> {
    let named = sections.named(report, "policy");
    if let Some((key, _)) = named.get(POLICIES_MAX) {
        let message = format!("{} policies are too many", named.len());
        let fix = format!("keep at most {POLICIES_MAX}: tiers and facts tell callers apart");
        report.error("too-many-policies", key.place, message, fix);
    }
    let kept = named.into_iter().take(POLICIES_MAX);
    kept.map(|entry| policy::read(report, known, entry)).collect()
}

fn ids<'t>(drafts: &[policy::Draft<'t>]) -> Ids<'t> {
    // At most `POLICIES_MAX` of them, so every place fits.
    let numbered = (0_u16..).zip(drafts);
    numbered.map(|(at, draft)| (draft.key.text, PolicyId(at))).collect()
}

/// A fingerprint of all texts and of the variables that were given, each with its length before
/// it. Where a file lies does not matter.
fn revision(sources: &[Source<'_>], given: &BTreeMap<String, String>) -> Name {
    let mut hasher = blake3::Hasher::new();
    let texts = sources.iter().map(|source| source.text);
    let variables = given.iter().flat_map(|(name, held)| [name.as_str(), held.as_str()]);
    for text in texts.chain(variables) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].into()
}
