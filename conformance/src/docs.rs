//! `cargo xtask docs`: every console block of the documentation, run and compared.
//!
//! A document is one shell session in a fresh directory, so that a reader who types what it says
//! sees what it says. The conventions are in CONTRIBUTING.md. Must not write to the checkout.

mod compare;
mod markdown;
mod ports;
mod session;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use markdown::Step;

use crate::{ProcessGuard, Repo, TestContext, binary, packages};

/// For the task on its own; as a part of the tests, the budget of the part applies.
const LIMIT: Duration = Duration::from_secs(600);
/// The documents outside the guides.
const READMES: [&str; 2] = ["README.md", "README.pt-BR.md"];
/// The guides in English and in Portuguese.
const GUIDES: [&str; 2] = ["docs/guide/", "docs/guia/"];

/// `cargo xtask docs [FILE...]`
pub fn command(repo: &Repo, args: &[String]) -> Result<()> {
    let processes = ProcessGuard::new(LIMIT);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let documents = if args.is_empty() { documents(repo)? } else { args.to_vec() };
    run(&context, &documents).and(processes.sweep())
}

/// The directory in which a document's commands run: its files and the presets.
pub(crate) fn tour_room(repo: &Repo, document: &str, context: &Path) -> Result<()> {
    session::create_work_dir(context, &repo.path("presets"))?;
    for step in markdown::parse(&repo.read(document)?)? {
        if let Step::File { name, body } = step {
            let place = context.join(name);
            fs::create_dir_all(place.parent().unwrap_or(context))?;
            fs::write(place, body)?;
        }
    }
    Ok(())
}

/// A document's commands up to the first that has this word, to be run by a shell.
pub(crate) fn tour_script(repo: &Repo, document: &str, word: &str) -> Result<String> {
    let steps = markdown::parse(&repo.read(document)?)?;
    let commands: Vec<_> = steps.iter().filter_map(Step::command).collect();
    let has_word = |text: &str| text.split_whitespace().any(|part| part == word);
    let found = commands.iter().position(|command| has_word(&command.text));
    let last = found.with_context(|| format!("{document} has no command with {word}"))?;
    let texts: Vec<&str> = commands[..=last].iter().map(|command| &*command.text).collect();
    Ok(texts.join("\n"))
}

/// The body of a document's only block with a tag, such as `gateway=nginx`.
pub(crate) fn tagged_block(repo: &Repo, document: &str, tag: &str) -> Result<String> {
    markdown::block_with_tag(&repo.read(document)?, tag).with_context(|| document.to_owned())
}

/// The `docs` part.
pub fn run_all(context: &TestContext) -> Result<()> {
    run(context, &documents(context.repo)?)
}

fn documents(repo: &Repo) -> Result<Vec<String>> {
    let wanted = |file: &String| {
        let is_guide = GUIDES.iter().any(|folder| file.starts_with(folder));
        READMES.contains(&file.as_str()) || (is_guide && file.ends_with(".md"))
    };
    Ok(repo.files()?.into_iter().filter(wanted).collect())
}

fn run(context: &TestContext, documents: &[String]) -> Result<()> {
    let binary = binary::build(context)?;
    let programs = binary.parent().context("the binary has no directory")?;
    let mut problems = Vec::new();
    let mut total = 0;
    for document in documents {
        let steps = markdown::parse(&context.repo.read(document)?)
            .with_context(|| format!("cannot run {document}"))?;
        let commands = steps.iter().filter(|step| step.command().is_some()).count();
        println!("{document}: {commands} commands");
        if steps.contains(&Step::Postgres) {
            packages::postgres(context)?;
        }
        if steps.iter().filter_map(Step::command).any(|command| uses_redis(&command.text)) {
            packages::need(context, "redis-server", "redis-server")?;
        }
        total += commands;
        if commands > 0 {
            let found = check(context, programs, &steps)
                .with_context(|| format!("cannot run {document}"))?;
            problems.extend(found.into_iter().map(|problem| format!("{document}:{problem}")));
        }
    }
    for problem in &problems {
        println!("{problem}");
    }
    ensure!(total > 0, "the documentation has no console block to run");
    // Again at the end of a run, where the rest of its output may be cut.
    let first_lines: Vec<_> =
        problems.iter().filter_map(|problem| problem.lines().next()).collect();
    let list = first_lines.join("\n  ");
    let count = problems.len();
    ensure!(count == 0, "{count} of {total} commands do not do what is shown:\n  {list}");
    Ok(())
}

/// Whether a command needs the programs of Redis.
fn uses_redis(command: &str) -> bool {
    command.split_whitespace().any(|word| word == "redis-server" || word == "redis-cli")
}

/// Runs one document; each problem begins with its line number.
fn check(context: &TestContext, programs: &Path, steps: &[Step]) -> Result<Vec<String>> {
    let replies = session::run(context.processes, programs, &context.repo.path("presets"), steps)?;
    let commands: Vec<_> = steps.iter().filter_map(Step::command).collect();
    let mut problems = Vec::new();
    for (index, (command, reply)) in commands.iter().zip(&replies).enumerate() {
        let announced = commands.get(index + 1).is_some_and(|next| next.shows_status());
        problems.extend(compare::problem(command, reply, announced));
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each guide runs on its own, so each installs what it calls.
    #[test]
    fn a_document_that_starts_redis_needs_it() {
        let documents = [
            (include_str!("../../docs/guide/operators-day-redis.md"), true),
            (include_str!("../../docs/guide/operators-day-nodes.md"), true),
            (include_str!("../../docs/guide/operators-day.md"), false),
        ];
        for (text, needs) in documents {
            let steps = markdown::parse(text).unwrap();
            let mut commands = steps.iter().filter_map(Step::command);
            assert_eq!(commands.any(|command| uses_redis(&command.text)), needs);
        }
        assert!(!uses_redis("echo redis"));
    }
}
