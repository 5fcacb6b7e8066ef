//! Reads fixtures of catalogs with all sections, those of the server too. One text may contain
//! several files, each after a line `#--- name`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};
use catraca_core::catalog::read::{IncludedFile, ParsedCatalog, read_with};
use catraca_server::ProcessReader;

/// The folder of the fixtures of core, which the shared tests of codes read.
pub fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../catraca-core/tests/fixtures/catalog")
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
    read_with("catalog.toml", root, &mut load, &|_| None, &mut ProcessReader::default())
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
