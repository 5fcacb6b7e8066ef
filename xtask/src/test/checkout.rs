//! A test run leaves the checkout as it was: compares what git sees before and after.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;

/// The files that differ from the last commit: the lines of `git status`, each with the content of
/// its file. A directory that git does not track has none.
pub(crate) struct Checkout {
    changes: BTreeMap<String, Vec<u8>>,
}

impl Checkout {
    pub(crate) fn read(repo: &Repo) -> Result<Self> {
        let output = repo.command("git").args(["status", "--porcelain"]).output();
        let output = output.context("cannot run git")?;
        ensure!(output.status.success(), "git status failed: {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let change = |line: &str| {
            // Two letters of state and a space come before the path.
            let path = repo.path(line.get(3..).unwrap_or_default());
            (line.to_owned(), fs::read(path).unwrap_or_default())
        };
        Ok(Self { changes: text.lines().map(change).collect() })
    }

    /// Fails if `after` has other changes.
    pub(crate) fn compare(&self, after: &Self) -> Result<()> {
        let gone = self.changes.keys().filter(|line| !after.changes.contains_key(*line));
        let new = after
            .changes
            .iter()
            .filter(|(line, content)| self.changes.get(*line) != Some(*content));
        let changed: Vec<&str> =
            gone.chain(new.map(|(line, _)| line)).map(|line| &**line).collect();
        let list = changed.join("\n  ");
        ensure!(changed.is_empty(), "the run changed files of the checkout:\n  {list}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_run_changes_or_leaves_behind_is_named() {
        let state = |files: &[(&str, &str)]| Checkout {
            changes: (files.iter())
                .map(|(line, content)| ((*line).to_owned(), content.as_bytes().to_vec()))
                .collect(),
        };
        let before = state(&[(" M README.md", "one")]);
        assert!(before.compare(&state(&[(" M README.md", "one")])).is_ok());
        let after = state(&[(" M README.md", "one"), ("?? docs/new.png", "")]);
        let error = before.compare(&after).unwrap_err().to_string();
        assert!(error.contains("?? docs/new.png") && !error.contains("README"), "{error}");
        assert!(before.compare(&state(&[])).is_err());
        // Changed before the run, and again by it.
        assert!(before.compare(&state(&[(" M README.md", "two")])).is_err());
    }
}
