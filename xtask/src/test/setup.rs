//! Installs what the parts need, while the first parts compile: it mostly waits for the network.
//!
//! It is a process of its own, `cargo xtask setup`, with its output in a file, and the first part
//! that may install something waits for its end. Must not decide whether a part can run: each part
//! looks for its programs again, and installs what is missing.

use std::fs::{self, File};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use catraca_conformance::{
    ProcessGuard, Repo, TestContext, api, deploy, faults, gateways, packages, sfcc, typescript,
};

use super::parts::Part;
use super::report::PartResult;
use super::{postgres, redis};

const LOG: &str = "target/setup.log";
const LIMIT: Duration = Duration::from_secs(1_200);
/// For the time after the parts that run beside it.
const BUDGET: Duration = Duration::from_secs(300);
/// Parts that install nothing, and run at the same time.
const BESIDE: [&str; 6] = ["fmt", "tidy", "licences", "clippy", "doc", "features"];

type Install = fn(&TestContext) -> Result<()>;

/// What parts install, in the order of the parts.
const INSTALLS: [(&str, Install); 9] = [
    ("unit", |context| packages::postgres(context).map(drop)),
    ("redis", |context| packages::need(context, redis::SERVER, redis::SERVER).map(drop)),
    ("postgres", |context| packages::need(context, postgres::POOLER, postgres::POOLER).map(drop)),
    ("faults", faults::set_up),
    ("api", api::set_up),
    ("typescript", typescript::set_up),
    ("sfcc", sfcc::set_up),
    ("gateways", gateways::set_up),
    ("deploy", deploy::set_up),
];

/// `cargo xtask setup [PART...]`: installs what these parts need, or all.
pub(crate) fn command(repo: &Repo, args: &[String]) -> Result<()> {
    let processes = ProcessGuard::new(LIMIT);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let unknown = args.iter().find(|arg| INSTALLS.iter().all(|(part, _)| part != arg));
    ensure!(unknown.is_none(), "nothing is installed for `{}`", unknown.map_or("", String::as_str));
    let mut failed = Vec::new();
    for (part, install) in INSTALLS {
        if !args.is_empty() && !args.iter().any(|arg| arg == part) {
            continue;
        }
        if let Err(error) = install(&context) {
            failed.push(format!("{part}: {error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    processes.sweep()
}

/// The process that installs.
pub(super) struct Setup {
    child: Option<Child>,
}

impl Setup {
    /// Starts the process if no part would have to wait for it at once.
    pub(super) fn start(repo: &Repo, parts: &[&Part]) -> Result<Self> {
        let installs = INSTALLS.iter().map(|(name, _)| *name);
        let needed: Vec<&str> =
            installs.filter(|name| parts.iter().any(|part| part.name == *name)).collect();
        let is_useful = parts.first().is_some_and(|part| BESIDE.contains(&part.name));
        if !is_useful || needed.is_empty() {
            return Ok(Self { child: None });
        }
        let log = repo.path(LOG);
        fs::create_dir_all(log.parent().context("a file has a folder")?)?;
        let output = File::create(log)?;
        let mut own = Command::new(std::env::current_exe()?);
        own.arg("setup").args(needed).stdout(output.try_clone()?).stderr(output);
        Ok(Self { child: Some(own.spawn()?) })
    }

    /// Waits for the process, unless the part runs at the same time. Returns how long it took. A
    /// failure is none of the run: the parts try again, and report it.
    pub(super) fn wait_before(&mut self, part: &Part) -> Result<Option<PartResult>> {
        if BESIDE.contains(&part.name) {
            return Ok(None);
        }
        let Some(mut child) = self.child.take() else { return Ok(None) };
        println!("\n== setup (budget {} min)", BUDGET.as_secs() / 60);
        let start = Instant::now();
        let status = child.wait()?;
        println!("its output is in {LOG}; {status}");
        let took = start.elapsed();
        Ok(Some(PartResult { name: "setup", took, budget: BUDGET, error: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::PARTS;
    use super::*;

    #[test]
    fn every_name_is_that_of_a_part() {
        for name in INSTALLS.map(|(name, _)| name).into_iter().chain(BESIDE) {
            assert!(PARTS.iter().any(|part| part.name == name), "{name}");
        }
    }

    #[test]
    fn a_part_that_needs_it_at_once_installs_by_itself() {
        let repo = Repo::open().unwrap();
        let part = |name: &str| PARTS.iter().find(|part| part.name == name).unwrap();
        for parts in [vec![part("unit"), part("api")], vec![part("fmt"), part("tidy")]] {
            assert!(Setup::start(&repo, &parts).unwrap().child.is_none());
        }
    }
}
