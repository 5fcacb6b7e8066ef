//! The library without features stays small: a program that only limits requests must not compile
//! much for it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use catraca_conformance::TestContext;

/// The most crates of the default features, with the library itself and those of build scripts.
const CRATES_MAX: usize = 40;
/// The page that names the number of crates.
const GUIDE: &str = "docs/guide/library.md";
/// Crates that take seconds to build and that the default features do without. The time itself is
/// not checked: it depends on the machine (ADR 0027).
const SLOW: [&str; 6] =
    ["chacha20poly1305", "data-encoding", "regex", "serde_json", "syn", "tokio"];

pub(super) fn run(context: &TestContext) -> Result<()> {
    let args = ["tree", "-p", "catraca", "-e", "normal,build", "--prefix", "none", "--locked"];
    let output = context.repo.cargo(&args).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let crates = count_crates(&tree);
    println!("default features: {crates} crates, at most {CRATES_MAX}");
    ensure!(
        (2..=CRATES_MAX).contains(&crates),
        "the default features of the library need {crates} crates, and {CRATES_MAX} are allowed: \
         make a new dependency one of a feature (ADR 0027)"
    );
    let stated = format!("in {crates} crates,");
    ensure!(
        context.repo.read(GUIDE)?.contains(&stated),
        "{GUIDE} does not contain \"{stated}\": correct the number of crates without features"
    );
    let slow = slow_crates(&tree);
    ensure!(
        slow.is_empty(),
        "the default features of the library need {}, which take seconds to build: make them \
         dependencies of a feature (ADR 0027)",
        slow.join(", ")
    );
    Ok(())
}

/// The crates of a tree that the default features must do without.
fn slow_crates(tree: &str) -> Vec<&'static str> {
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    SLOW.into_iter().filter(|name| names.contains(name)).collect()
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

    #[test]
    fn a_slow_crate_is_named() {
        assert!(slow_crates("catraca v0.1.0\ntoml v1.1.8\nsynstructure v0.13.0\n").is_empty());
        assert_eq!(
            slow_crates("catraca v0.1.0\nsyn v2.0.1 (*)\ntokio v1.54.1\n"),
            ["syn", "tokio"]
        );
    }
}
