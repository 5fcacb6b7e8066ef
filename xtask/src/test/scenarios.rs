//! Runs `catraca test` over every directory with scenarios, as a user would.
//!
//! Must not know what a scenario says; the binary judges it.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use catraca_conformance::{TestContext, binary};

const ROOTS: [&str; 2] = ["presets/", "docs/guide/"];

/// The ending that makes a file a scenario.
pub(crate) const SUFFIX: &str = ".scenario.toml";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let files = context.repo.files()?;
    let directories = by_directory(&files);
    ensure!(!directories.is_empty(), "no *{SUFFIX} under {}", ROOTS.join(" or "));
    let binary = binary::build(context)?;
    let mut failed = Vec::new();
    for (directory, files) in &directories {
        let mut catraca = context.repo.command(&binary.to_string_lossy());
        if let Err(error) = context.processes.run(catraca.arg("test").args(files)) {
            failed.push(format!("{directory}: {error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

fn by_directory(files: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut directories: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let scenarios = files.iter().filter(|file| file.ends_with(SUFFIX));
    for file in scenarios.filter(|file| ROOTS.iter().any(|root| file.starts_with(root))) {
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
        directories.entry(directory).or_default().push(file);
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_grouped_by_directory_and_the_rest_left_out() {
        let files = [
            "docs/guide/ban.scenario.toml",
            "presets/dict/a.scenario.toml",
            "presets/dict/b.scenario.toml",
            "presets/dict/catalog.toml",
            "crates/x/c.scenario.toml",
        ];
        let files = files.map(str::to_owned);
        let found: Vec<_> = by_directory(&files).into_iter().collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], ("docs/guide", vec!["docs/guide/ban.scenario.toml"]));
        assert_eq!(found[1].1.len(), 2);
    }
}
