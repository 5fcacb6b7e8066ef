//! `cargo xtask tidy`: the house rules that a machine can check.
//!
//! Exceptions live in `xtask/tidy-allow.txt`, which only ever shrinks. Must not change a file: it
//! reports, people mend.

mod allow;
mod cycles;
mod deps;
mod documents;
mod forbidden_texts;
mod functions;
mod lua;
pub(crate) mod mask;
mod names;
mod plain_words;
mod quiet_places;
mod recipe;
mod source;
mod trust;
mod tuple_lets;

use anyhow::{Result, ensure};
use catraca_conformance::Repo;

const ALLOW: &str = "xtask/tidy-allow.txt";

/// One breach of a rule.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    /// The file, or `file::function`: what an exception names.
    pub(crate) place: String,
    /// How bad: lines of a file or function, or 1 for each single breach.
    pub(crate) size: usize,
    pub(crate) message: String,
}

impl Finding {
    fn new(rule: &'static str, place: &str, size: usize, message: String) -> Self {
        Self { rule, place: place.to_owned(), size, message }
    }
}

/// Checks every file of the project and fails if anything is untidy.
pub(crate) fn tidy(repo: &Repo) -> Result<()> {
    let files = repo.files()?;
    let mut findings = documents::check(repo, &files)?;
    findings.extend(recipe::check(repo, &files)?);
    findings.extend(trust::check(repo, &files)?);
    findings.extend(quiet_places::check(repo, &files)?);
    let mut names = names::Names::default();
    let mut uses = cycles::Uses::default();
    for file in &files {
        // What is not UTF-8 is no text, and no rule here speaks of it.
        let Ok(text) = repo.read(file) else { continue };
        findings.extend(forbidden_texts::check(file, &text));
        findings.extend(plain_words::check(file, &text));
        if file.ends_with(".rs") {
            findings.extend(source::check(file, &text));
            findings.extend(tuple_lets::check(file, &text));
            names.add(file, &text);
            uses.add(file, &text);
        }
        if file.ends_with(".lua") {
            findings.extend(lua::check(file, &text));
        }
        if file.ends_with("Cargo.toml") {
            findings.extend(deps::check(file, &text)?);
        }
    }
    findings.extend(names.check());
    findings.extend(uses.check());
    let allowed = allow::parse(&repo.read(ALLOW)?)?;
    let problems = allow::settle(findings, &allowed);
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(problems.is_empty(), "{} untidy places", problems.len());
    println!("{} files are tidy", files.len());
    Ok(())
}
