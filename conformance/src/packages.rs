//! Programs that a task needs and that may be missing: found on the path, or installed.
//!
//! Set-up belongs to the run. Must not start a service.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use anyhow::{Context, Result};

use crate::TestContext;

/// The path of a program; its package is installed if it is missing and the machine can.
pub fn need(context: &TestContext, program: &str, package: &str) -> Result<PathBuf> {
    match find(program) {
        Some(path) => Ok(path),
        None => install(context, program, package),
    }
}

fn install(context: &TestContext, program: &str, package: &str) -> Result<PathBuf> {
    fetch(context, package)?;
    find(program).with_context(|| help(package))
}

/// The folder of PostgreSQL's programs, which its package keeps off the path.
pub fn postgres(context: &TestContext) -> Result<PathBuf> {
    let package = "postgresql";
    if newest(POSTGRES).is_none() {
        fetch(context, package)?;
    }
    newest(POSTGRES).with_context(|| help(package))
}

const POSTGRES: &str = "/usr/lib/postgresql";

/// The programs of the highest version below a folder.
fn newest(folder: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path().join("bin"));
    let number = |programs: &PathBuf| -> Option<u32> {
        programs.parent()?.file_name()?.to_str()?.parse().ok()
    };
    versions.filter(|programs| programs.join("initdb").is_file()).max_by_key(number)
}

/// Whether this run has updated the list of packages. Locked while apt runs, because a second apt
/// would fail.
static LIST_IS_NEW: Mutex<bool> = Mutex::new(false);

fn fetch(context: &TestContext, package: &str) -> Result<()> {
    let mut list_is_new = LIST_IS_NEW.lock().unwrap_or_else(PoisonError::into_inner);
    if !*list_is_new {
        apt(context, &["update"]).with_context(|| help(package))?;
        *list_is_new = true;
    }
    apt(context, &["install", "-y", "--no-install-recommends", package])
        .with_context(|| help(package))
}

fn help(package: &str) -> String {
    format!("install {package} by hand and run this again")
}

/// In run level 1 the package's own scripts start no service.
fn apt(context: &TestContext, args: &[&str]) -> Result<()> {
    let mut apt = context.repo.command("apt-get");
    apt.args(["-q", "-o", "DPkg::Lock::Timeout=120"]).args(args);
    context.processes.run(apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1"))
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_or_not_at_all() {
        assert!(find("bash").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
