//! Reads fixtures. One text may contain several files, each after a line `#--- name`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};
use catraca_core::catalog::read::{
    AttributeTable, IncludedFile, ParsedCatalog, ProcessSections, Sections, VariableLookup, read,
    read_with,
};
use catraca_core::located::{FieldSchema, Report, TableFields, TableSchema, ValueSchema};

/// The folder of fixtures.
pub fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/catalog")
}

/// A fixture's text.
pub fn fixture(name: &str) -> String {
    let path = fixtures().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a catalog of several files, the first of which is `catalog.toml`.
pub fn read_text(text: &str) -> Result<ParsedCatalog, Diagnostics> {
    let mut parts = text.split("#--- ");
    let root = parts.next().unwrap_or_default();
    let others: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('\n')).collect();
    let mut load = |name: &str| {
        let text = others.get(name).map(|text| IncludedFile::Text((*text).to_owned()));
        text.ok_or_else(|| "no such file".to_owned())
    };
    read("catalog.toml", root, &mut load, &|_| None)
}

/// All diagnostics of a catalog, valid or not.
pub fn diagnostics_of(text: &str) -> Vec<Diagnostic> {
    match read_text(text) {
        Ok(reading) => reading.warnings,
        Err(refused) => refused.all,
    }
}

/// The codes of all diagnostics of a catalog.
pub fn codes(text: &str) -> Vec<&'static str> {
    diagnostics_of(text).iter().map(|found| found.code).collect()
}

/// Reads a catalog that must be valid.
pub fn must_read(text: &str) -> ParsedCatalog {
    read_text(text).unwrap_or_else(|refused| panic!("{refused}"))
}

/// Reads a catalog of one file, and lets the owner read its sections.
pub fn read_as(
    owner: &mut dyn ProcessSections,
    text: &str,
    variable: VariableLookup<'_>,
) -> Result<ParsedCatalog, Diagnostics> {
    let mut load = |_: &str| Err("none".to_owned());
    read_with("catalog.toml", text, &mut load, variable, owner)
}

/// The owner of a `[server]` section with one field.
#[derive(Default)]
pub struct LogOwner {
    pub log: Option<String>,
}

static SERVER: TableSchema = TableSchema {
    name: "server section",
    fields: &[FieldSchema::new("log", ValueSchema::Text, "a text")],
};

impl ProcessSections for LogOwner {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn read(&mut self, report: &mut Report, sections: &Sections<'_>, _: &AttributeTable) {
        let Some((key, node)) = sections.single(report, "server") else { return };
        let fields = TableFields::read(report, key.location, node, &SERVER);
        let log = fields.and_then(|fields| fields.get("log"));
        self.log = log.and_then(|node| node.text(report, "a text")).map(str::to_owned);
    }
}
