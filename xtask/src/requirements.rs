//! `cargo xtask trace`: which requirement has a test.
//!
//! Three things meet here: the register (`docs/requirements.md`), the claims (`covers` in tests and
//! scenarios) and the waivers (`docs/waivers.toml`). Must not judge whether a test is good.

mod claims;
mod ids;
mod register;
mod report;
mod waivers;

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use catraca_conformance::Repo;

use claims::Claim;
use ids::Id;
use register::Register;
use waivers::Waiver;

const REGISTER: &str = "docs/requirements.md";
const WAIVERS: &str = "docs/waivers.toml";

/// `cargo xtask trace [--list | ID]`
pub(crate) fn command(repo: &Repo, args: &[String]) -> Result<()> {
    match args {
        [] => trace(repo, false),
        [flag] if flag == "--list" => trace(repo, true),
        [id] if !id.starts_with('-') => print_claims(repo, &id.parse()?),
        _ => bail!("usage: cargo xtask trace [--list | ID]"),
    }
}

/// Names the tests that claim to cover one requirement.
fn print_claims(repo: &Repo, id: &Id) -> Result<()> {
    let claims = claims::collect(repo, &mut Vec::new())?;
    for claim in claims.iter().filter(|claim| claim.id == *id) {
        println!("{}: {}", claim.place, claim.test);
    }
    Ok(())
}

/// Prints the table; fails on a claim or a waiver that cannot be true.
pub(crate) fn trace(repo: &Repo, list: bool) -> Result<()> {
    let register = Register::parse(&repo.read(REGISTER)?)?;
    let mut problems = Vec::new();
    let claims = claims::collect(repo, &mut problems)?;
    let waivers = waivers::parse(&repo.read(WAIVERS)?, &mut problems)?;
    judge(&register, &claims, &waivers, &mut problems);

    let covered: BTreeSet<Id> = claims.into_iter().map(|claim| claim.id).collect();
    let waived: BTreeSet<Id> = waivers.into_iter().map(|waiver| waiver.id).collect();
    print!("{}", report::table(&register, &covered, &waived, list));
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(problems.is_empty(), "{} problems in the trace", problems.len());
    Ok(())
}

fn judge(register: &Register, claims: &[Claim], waivers: &[Waiver], problems: &mut Vec<String>) {
    for claim in claims.iter().filter(|claim| !register.has(&claim.id)) {
        problems.push(format!("{}: unknown requirement {}", claim.place, claim.id));
    }
    let mut seen = BTreeSet::new();
    for waiver in waivers {
        if !register.has(&waiver.id) {
            problems.push(format!("{WAIVERS}: unknown requirement {}", waiver.id));
        }
        if !seen.insert(&waiver.id) {
            problems.push(format!("{WAIVERS}: {} is waived twice", waiver.id));
        }
        if waiver.reason.trim().is_empty() {
            problems.push(format!("{WAIVERS}: {} is waived without a reason", waiver.id));
        }
        if let Some(claim) = claims.iter().find(|claim| claim.id == waiver.id) {
            problems.push(format!("{WAIVERS}: {} is covered by {}", waiver.id, claim.place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    fn claim(text: &str) -> Claim {
        Claim { id: id(text), place: "a.rs:1".to_owned(), test: "fn a() {".to_owned() }
    }

    fn problems(claims: &[&str], waivers: &[(&str, &str)]) -> Vec<String> {
        let register = Register::parse("| 000-01 | a | b |\n| X-01 | a | b |\n").unwrap();
        let claims: Vec<Claim> = claims.iter().map(|text| claim(text)).collect();
        let waivers: Vec<Waiver> = waivers
            .iter()
            .map(|(text, reason)| Waiver { id: id(text), reason: (*reason).to_owned() })
            .collect();
        let mut problems = Vec::new();
        judge(&register, &claims, &waivers, &mut problems);
        problems
    }

    #[test]
    fn a_true_trace_has_no_problems() {
        assert!(problems(&["000-01", "000-01"], &[("X-01", "prose")]).is_empty());
    }

    #[test]
    fn unknown_ids_are_reported_with_their_place() {
        assert_eq!(problems(&["000-02"], &[]), ["a.rs:1: unknown requirement 000-02"]);
        assert!(problems(&[], &[("B-01", "prose")])[0].contains("unknown requirement B-01"));
    }

    #[test]
    fn a_waiver_needs_a_reason_and_an_uncovered_id_of_its_own() {
        assert!(problems(&[], &[("X-01", " ")])[0].contains("without a reason"));
        assert!(problems(&[], &[("X-01", "a"), ("X-01", "b")])[0].contains("twice"));
        assert!(problems(&["X-01"], &[("X-01", "a")])[0].contains("is covered by a.rs:1"));
    }
}
