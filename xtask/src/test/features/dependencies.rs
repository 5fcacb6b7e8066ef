//! The library without features stays small: a program that only limits requests must not compile
//! much for it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use catraca_conformance::TestContext;

/// The most crates of the default features, with the library itself and those of build scripts.
const CRATES_MAX: usize = 40;

pub(super) fn run(context: &TestContext) -> Result<()> {
    let args = ["tree", "-p", "catraca", "-e", "normal,build", "--prefix", "none", "--locked"];
    let output = context.repo.cargo(&args).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let crates = count_crates(&String::from_utf8_lossy(&output.stdout));
    println!("default features: {crates} crates, at most {CRATES_MAX}");
    ensure!(
        (2..=CRATES_MAX).contains(&crates),
        "the default features of the library need {crates} crates, and {CRATES_MAX} are allowed: \
         make a new dependency one of a feature (ADR 0027)"
    );
    Ok(())
}

/// The crates of a tree, in which a crate that was shown before is marked with `(*)`.
fn count_crates(tree: &str) -> usize {
    let names = tree.lines().map(|line| line.trim_end_matches(" (*)").trim());
    names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_shown_twice_counts_once() {
        let tree = "catraca v0.1.0\nblake3 v1.8.7\ncfg-if v1.0.0\n\ncfg-if v1.0.0 (*)\n";
        assert_eq!(count_crates(tree), 3);
    }
}
