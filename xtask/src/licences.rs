//! `cargo xtask licences`: every dependency's licence against the list in `deny.toml`.
//!
//! The same file serves cargo-deny where it is installed; this check needs nothing but cargo. Must
//! not hold a list of its own.

mod expression;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;
use serde_json::Value;

const CONFIG: &str = "deny.toml";

/// Fails on a dependency whose licence is missing or not on the list.
pub(crate) fn licences(repo: &Repo) -> Result<()> {
    let allowed = allow_list(&repo.read(CONFIG)?)?;
    let metadata = metadata(repo)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let problems: Vec<String> =
        packages.iter().filter_map(|package| problem(package, &allowed)).collect();
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(problems.is_empty(), "{} licences are not on the list", problems.len());
    println!("{} packages, all under licences of {CONFIG}", packages.len());
    Ok(())
}

fn allow_list(text: &str) -> Result<BTreeSet<String>> {
    let config: toml::Table = text.parse().with_context(|| format!("cannot read {CONFIG}"))?;
    let list = config.get("licenses").and_then(|section| section.get("allow"));
    let list = list.and_then(toml::Value::as_array);
    let list = list.with_context(|| format!("{CONFIG} has no licenses.allow"))?;
    Ok(list.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
}

/// All packages the lock file may bring in, for any target and feature.
fn metadata(repo: &Repo) -> Result<Value> {
    let args = ["metadata", "--format-version", "1", "--all-features"];
    let output = repo.cargo(&args).output().context("cannot run cargo metadata")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", errors.trim());
    serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")
}

fn problem(package: &Value, allowed: &BTreeSet<String>) -> Option<String> {
    let name = format!(
        "{} {}",
        package["name"].as_str().unwrap_or("?"),
        package["version"].as_str().unwrap_or("?")
    );
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("{name}: declares no licence"));
    };
    match expression::is_allowed(licence, allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name}: `{licence}` is not on the list")),
        Err(error) => Some(format!("{name}: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_is_read_from_the_config() {
        let list = allow_list("[licenses]\nallow = [\"MIT\", \"ISC\"]\n").unwrap();
        assert!(list.contains("MIT") && list.contains("ISC") && list.len() == 2);
        assert!(allow_list("[licenses]\n").is_err());
    }

    #[test]
    fn a_package_needs_a_licence_on_the_list() {
        let allowed = BTreeSet::from(["MIT".to_owned()]);
        let package = |licence: Value| json!({"name": "a", "version": "1.0.0", "license": licence});
        assert_eq!(problem(&package(json!("MIT")), &allowed), None);
        assert!(problem(&package(json!("GPL-3.0-only")), &allowed).is_some());
        assert!(problem(&package(Value::Null), &allowed).is_some_and(|p| p.contains("a 1.0.0")));
    }
}
