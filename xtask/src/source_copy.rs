//! A copy of the sources under the target directory, which a task may edit and build.
//!
//! The copy shares the target directory, so that third-party crates are not built again. Must not
//! write to the checkout itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;
use serde_json::Value;

/// The folder of the sources in the copy. Cargo names what it builds by the path of a package in
/// its workspace: with the paths of the checkout, copy and checkout would overwrite each other.
const SOURCES: &str = "source";

/// A workspace of its own, in a folder of the target directory.
pub(crate) struct SourceCopy {
    target: PathBuf,
    root: PathBuf,
}

impl SourceCopy {
    /// Writes the copy, with `edit` applied to the path and the text of every Rust file. A file
    /// that has not changed is not written, so that cargo builds only what has.
    pub(crate) fn write(
        repo: &Repo,
        folder: &str,
        edit: impl Fn(&str, String) -> Result<String>,
    ) -> Result<Self> {
        let target = target_directory(repo)?;
        let copy = Self { root: target.join(folder), target };
        let mut written = BTreeSet::new();
        for file in repo.files()? {
            let Some(path) = copy.place(&file) else { continue };
            let content = match file.as_str() {
                "Cargo.toml" => move_members(&repo.read(&file)?)?.into_bytes(),
                file if file.ends_with(".rs") => edit(file, repo.read(file)?)?.into_bytes(),
                file => fs::read(repo.path(file))?,
            };
            write_if_changed(&path, &content)?;
            written.insert(path);
        }
        remove_others(&copy.root.join(SOURCES), &written)?;
        Ok(copy)
    }

    /// The root of the copied workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file of the checkout, relative to the root of the copy.
    pub(crate) fn relative(file: &str) -> String {
        format!("{SOURCES}/{file}")
    }

    /// Cargo in the copied workspace.
    pub(crate) fn cargo(&self, repo: &Repo, args: &[&str]) -> Command {
        let mut cargo = repo.cargo(args);
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    /// Where a file of the checkout is in the copy; `None` if it is not copied.
    fn place(&self, file: &str) -> Option<PathBuf> {
        let is_manifest = ["Cargo.toml", "Cargo.lock"].contains(&file);
        // Benchmarks are workspaces of their own.
        let is_left_out = file.starts_with("bench/") || file.starts_with('.');
        match (is_manifest, is_left_out) {
            (true, _) => Some(self.root.join(file)),
            (_, true) => None,
            _ => Some(self.root.join(Self::relative(file))),
        }
    }
}

/// The target directory, which may be anywhere.
fn target_directory(repo: &Repo) -> Result<PathBuf> {
    let args = ["metadata", "--format-version", "1", "--no-deps"];
    let output = repo.cargo(&args).output().context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let target = metadata["target_directory"].as_str();
    Ok(PathBuf::from(target.context("cargo metadata names no target directory")?))
}

/// The manifest of the workspace, with its members in the folder of the sources.
fn move_members(manifest: &str) -> Result<String> {
    let moved = manifest
        .replace("\"crates/", &format!("\"{SOURCES}/crates/"))
        .replace("\"conformance\"", &format!("\"{SOURCES}/conformance\""))
        .replace("\"xtask\"", &format!("\"{SOURCES}/xtask\""));
    ensure!(moved != manifest, "the workspace has no members in crates/");
    Ok(moved)
}

fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes files of an earlier copy that the checkout no longer has.
fn remove_others(folder: &Path, written: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, written)?;
        } else if !written.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_move_to_the_folder_of_the_sources() {
        let members = r#"members = ["conformance", "crates/*", "xtask"]"#;
        let moved = r#"members = ["source/conformance", "source/crates/*", "source/xtask"]"#;
        assert_eq!(
            move_members(&format!("{members}\nanyhow = \"1\"")).unwrap(),
            format!("{moved}\nanyhow = \"1\"")
        );
        assert!(move_members("[package]").is_err());
    }
}
