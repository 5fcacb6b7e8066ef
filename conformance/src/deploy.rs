//! What operators install: alerts that fire when they should, series that exist, a hardened unit.
//!
//! Installs what it checks with when that is missing. Must not start a service, nor claim that an
//! image was built: there is no engine here to build one.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{TestContext, packages};

const OBSERVE: &str = "docs/guide/observe.md";
const ALERTS: &str = "deploy/prometheus/alerts.yml";
const DASHBOARD: &str = "deploy/grafana/catraca.json";
const IMAGE: &str = "deploy/docker/Dockerfile";
const UNIT: &str = "deploy/systemd/catraca.service";
/// In tenths: what systemd itself calls well protected ends at 20.
const EXPOSURE: &str = "--threshold=15";

/// Installs what the part needs.
pub fn set_up(context: &TestContext) -> Result<()> {
    find_promtool(context)?;
    find_analyze(context).map(drop)
}

/// The part `deploy`.
pub fn run(context: &TestContext) -> Result<()> {
    series_exist(context)?;
    alerts(context)?;
    image(context)?;
    unit(context)
}

/// Every series of the dashboard and the alerts is one that the guide describes, and the guide is
/// compared with the metrics of a real server by another test.
fn series_exist(context: &TestContext) -> Result<()> {
    let read = |file: &str| {
        fs::read_to_string(context.repo.path(file)).with_context(|| format!("cannot read {file}"))
    };
    let guide = read(OBSERVE)?;
    let described = documented_series(&guide);
    let dashboard = read(DASHBOARD)?;
    let shown: Value = serde_json::from_str(&dashboard).context(DASHBOARD)?;
    ensure!(shown["panels"].as_array().is_some_and(|all| all.len() > 9), "{DASHBOARD} is empty");
    for (file, text) in [(ALERTS, read(ALERTS)?), (DASHBOARD, dashboard)] {
        let used = series(&text);
        let unknown: Vec<&str> =
            used.iter().filter(|name| !is_known(&described, name)).copied().collect();
        ensure!(
            unknown.is_empty(),
            "{file} uses metrics that {OBSERVE} does not list: {}",
            unknown.join(", ")
        );
        println!("{file}: {} series, all described", used.len());
    }
    Ok(())
}

/// The series of the guide's tables.
fn documented_series(guide: &str) -> BTreeSet<&str> {
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `catraca_"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name).collect()
}

/// The names in a text that look like ours, without their prefix.
fn series(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter_map(|word| word.strip_prefix("catraca_")).collect()
}

/// A histogram is described by one name and asked for by three.
fn is_known(described: &BTreeSet<&str>, name: &str) -> bool {
    let parts = ["_bucket", "_sum", "_count"];
    let whole = parts.iter().find_map(|part| name.strip_suffix(part));
    described.contains(name) || whole.is_some_and(|whole| described.contains(whole))
}

/// covers: 004-89, X-30, 001-32
fn alerts(context: &TestContext) -> Result<()> {
    let promtool = find_promtool(context)?;
    for args in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let mut command = context.repo.command(&promtool.to_string_lossy());
        command.current_dir(context.repo.path("deploy/prometheus"));
        context.processes.run(command.args(args))?;
    }
    let tested = fs::read_to_string(context.repo.path("deploy/prometheus/alerts.test.yml"))?;
    let rules = fs::read_to_string(context.repo.path(ALERTS))?;
    let names = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untested: Vec<&str> = names.filter(|name| !tested.contains(name)).collect();
    ensure!(untested.is_empty(), "alerts without a test: {}", untested.join(", "));
    Ok(())
}

/// What can be said of an image without building it: fixed bases, and no root at its end.
fn image(context: &TestContext) -> Result<()> {
    let text = fs::read_to_string(context.repo.path(IMAGE))?;
    let bases = text.lines().filter_map(|line| line.strip_prefix("FROM "));
    let loose: Vec<&str> = bases.filter(|base| !is_fixed(base)).collect();
    ensure!(loose.is_empty(), "{IMAGE}: without a version: {}", loose.join(", "));
    let last = text.rsplit("\nFROM ").next().unwrap_or_default();
    let user = last.lines().rev().find_map(|line| line.strip_prefix("USER "));
    ensure!(user.is_some_and(|user| !user.starts_with('0') && user != "root"), "{IMAGE}: root");
    Ok(())
}

fn is_fixed(base: &str) -> bool {
    let image = base.split_whitespace().next().unwrap_or_default();
    image.split_once(':').is_some_and(|(_, version)| !version.is_empty() && version != "latest")
}

/// The unit loads without warnings, and `systemd-analyze security` rates its exposure as low.
fn unit(context: &TestContext) -> Result<()> {
    let analyze = find_analyze(context)?;
    let analyze = analyze.to_string_lossy();
    let checked = context.repo.command(&analyze).args(["verify", UNIT]).output()?;
    let said = String::from_utf8_lossy(&checked.stderr);
    // The program is not installed here; that alone may be missed.
    let complaints = said.lines().filter(|line| line.contains("catraca.service"));
    let complaints: Vec<&str> = complaints
        .filter(|line| !line.contains("/usr/local/bin/catraca is not executable"))
        .collect();
    ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    let security = ["security", "--offline=yes", "--no-pager", EXPOSURE, UNIT];
    let judged = context.repo.command(&analyze).args(security).output()?;
    let said = String::from_utf8_lossy(&judged.stdout);
    let level = said.lines().last().unwrap_or_default();
    println!("{level}");
    ensure!(judged.status.success(), "{UNIT} is rated too exposed by systemd-analyze: {level}");
    Ok(())
}

fn find_promtool(context: &TestContext) -> Result<PathBuf> {
    packages::need(context, "promtool", "prometheus")
}

fn find_analyze(context: &TestContext) -> Result<PathBuf> {
    packages::need(context, "systemd-analyze", "systemd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_without_a_version_is_loose() {
        assert!(is_fixed("rust:1.95-slim-bookworm AS build"));
        assert!(!is_fixed("debian") && !is_fixed("debian:latest"));
    }

    #[test]
    fn a_series_is_known_by_its_row_or_by_its_histogram() {
        let guide = "| `catraca_blocks` | | x |\n| `catraca_check_seconds` | | y |\n";
        let known = documented_series(guide);
        let used = series(
            "rate(catraca_check_seconds_bucket[5m]) + catraca_blocks{a=\"b\"} + catraca_bloks",
        );
        let unknown: Vec<_> = used.iter().filter(|name| !is_known(&known, name)).collect();
        assert_eq!((used.len(), unknown), (3, vec![&"bloks"]));
    }
}
