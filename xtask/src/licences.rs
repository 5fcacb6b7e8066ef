//! `cargo xtask licences`: the dependencies against `deny.toml`: the licence of each, and the
//! crates that `Cargo.lock` must not contain.
//!
//! The same file serves cargo-deny where it is installed; this check needs nothing but cargo. Must
//! not hold a list of its own.

mod expression;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;
use serde_json::Value;

const CONFIG: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// Fails on a dependency whose licence is missing or not on the list, and on one that is denied.
pub(crate) fn licences(repo: &Repo) -> Result<()> {
    let config = repo.read(CONFIG)?;
    let denied = denied_crates(&config)?;
    let found = denied_packages(&repo.read(LOCK)?, &denied)?;
    ensure!(found.is_empty(), "{LOCK} contains what {CONFIG} denies: {}", found.join(", "));
    let allowed = allow_list(&config)?;
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

/// The names in `bans.deny`.
fn denied_crates(text: &str) -> Result<Vec<String>> {
    let config: toml::Table = text.parse().with_context(|| format!("cannot read {CONFIG}"))?;
    let list = config.get("bans").and_then(|section| section.get("deny"));
    let list = list.and_then(toml::Value::as_array);
    let list = list.with_context(|| format!("{CONFIG} has no bans.deny"))?;
    let name = |entry: &toml::Value| entry.get("crate")?.as_str().map(str::to_owned);
    list.iter().map(|entry| name(entry).context("an entry of bans.deny has no `crate`")).collect()
}

/// The packages of a lock file that have one of these names.
fn denied_packages(lock: &str, denied: &[String]) -> Result<Vec<String>> {
    let lock: toml::Table = lock.parse().with_context(|| format!("cannot read {LOCK}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let packages = packages.with_context(|| format!("{LOCK} has no packages"))?;
    let names = packages.iter().filter_map(|package| package.get("name")?.as_str());
    let found = names.filter(|name| denied.iter().any(|denied| denied == name));
    Ok(found.map(str::to_owned).collect())
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
    fn the_lock_file_has_no_denied_crate() {
        let repo = Repo::open().unwrap();
        let denied = denied_crates(&repo.read(CONFIG).unwrap()).unwrap();
        for name in ["aws-lc-rs", "aws-lc-sys", "native-tls", "openssl-sys"] {
            assert!(denied.iter().any(|denied| denied == name), "{CONFIG} must deny {name}");
        }
        let lock = repo.read(LOCK).unwrap();
        assert_eq!(denied_packages(&lock, &denied).unwrap(), Vec::<String>::new());
        let more = format!("{lock}\n[[package]]\nname = \"aws-lc-sys\"\nversion = \"1.0.0\"\n");
        assert_eq!(denied_packages(&more, &denied).unwrap(), ["aws-lc-sys"]);
        assert!(denied_crates("[bans]\n").is_err());
        assert!(denied_packages("version = 4\n", &denied).is_err());
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
