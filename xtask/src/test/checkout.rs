//! A test run leaves the checkout as it was: compares what git sees before and after.

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;

/// The files that differ from the last commit, as git listed them before the run.
pub(crate) struct Checkout {
    changes: Vec<String>,
}

impl Checkout {
    pub(crate) fn read(repo: &Repo) -> Result<Self> {
        let output = repo.command("git").args(["status", "--porcelain"]).output();
        let output = output.context("cannot run git")?;
        ensure!(output.status.success(), "git status failed: {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(Self { changes: text.lines().map(str::to_owned).collect() })
    }

    /// Fails if `after` has other changes.
    pub(crate) fn compare(&self, after: &Self) -> Result<()> {
        let changed: Vec<&str> = (self.changes.iter().filter(|line| !after.changes.contains(line)))
            .chain(after.changes.iter().filter(|line| !self.changes.contains(line)))
            .map(String::as_str)
            .collect();
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
        let state = |lines: &[&str]| Checkout {
            changes: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let before = state(&[" M README.md"]);
        assert!(before.compare(&state(&[" M README.md"])).is_ok());
        let after = state(&[" M README.md", "?? docs/new.png"]);
        let error = before.compare(&after).unwrap_err().to_string();
        assert!(error.contains("?? docs/new.png") && !error.contains("README"), "{error}");
        assert!(before.compare(&state(&[])).is_err());
    }
}
