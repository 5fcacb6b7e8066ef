//! Generates a client for Go, Python and TypeScript from the OpenAPI document, compiles each, and
//! runs a program with each against a server.
//!
//! The guide shows the commands of the generators. Must not write into the checkout, except below
//! `target/`.

mod go;
mod python;
mod typescript;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::server::ServerUnderTest;
use crate::{Scratch, TestContext, binary};

const CATALOG: &str = include_str!("clients/catalog.toml");
/// The folders of the clients, which keep the installed packages for the next run.
const HOME: &str = "target/clients";
/// The OpenAPI document in the folder of each client.
const DOCUMENT: &str = "openapi.json";
/// The gates of the catalog as TypeScript, beside it; only the program in that language uses them.
const TYPES: &str = "gates.ts";

/// The part `clients`.
pub fn run(context: &TestContext) -> Result<()> {
    let binary = binary::build(context)?;
    let printed = context.repo.command(&binary.display().to_string()).arg("openapi").output()?;
    ensure!(printed.status.success(), "catraca openapi: {}", printed.status);
    let scratch = Scratch::new("clients")?;
    let catalog_folder = scratch.path().join("catalog");
    let served = ServerUnderTest::start(context, &binary, &catalog_folder, CATALOG, "check")?;
    let mut types = context.repo.command(&binary.display().to_string());
    let types = types.args(["types", "--lang", "ts"]).arg(catalog_folder.join("catalog.toml"));
    let types = types.output()?;
    ensure!(types.status.success(), "catraca types: {}", types.status);
    let documents = [(DOCUMENT, printed.stdout), (TYPES, types.stdout)];
    let languages: [(&str, ClientTest); 3] =
        [("go", go::run), ("python", python::run), ("typescript", typescript::run)];
    // All at a time: each waits for its packages for a while.
    let results: Vec<Result<()>> = thread::scope(|scope| {
        let test = |(language, test)| test_language(context, &served, &documents, language, test);
        let started = languages.map(|language| scope.spawn(move || test(language)));
        started.map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).into()
    });
    results.into_iter().collect::<Result<()>>()?;
    served.end()
}

/// Runs the test of a language, and prints the output of its commands when it has ended.
fn test_language(
    context: &TestContext,
    served: &ServerUnderTest,
    documents: &[(&str, Vec<u8>)],
    language: &str,
    test: ClientTest,
) -> Result<()> {
    let path = context.repo.path(HOME).join(language);
    fs::create_dir_all(&path)?;
    for (name, text) in documents {
        fs::write(path.join(name), text)?;
    }
    let log = path.join("log");
    let folder = ClientFolder { context, path: &path, served, log: File::create(&log)? };
    let result = test(&folder);
    println!("client of {language}:\n{}", String::from_utf8_lossy(&fs::read(&log)?));
    result.with_context(|| format!("client of {language}"))
}

/// Generates, compiles and runs the client of a language.
type ClientTest = fn(&ClientFolder<'_>) -> Result<()>;

/// The folder in which a client is generated, compiled and run.
struct ClientFolder<'a> {
    context: &'a TestContext<'a>,
    path: &'a Path,
    served: &'a ServerUnderTest,
    /// The output of all commands.
    log: File,
}

impl ClientFolder<'_> {
    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.path.join(name), text)?)
    }

    /// Runs a command, given as in a shell without quotes, in this folder.
    fn run(&self, command: &str) -> Result<()> {
        self.context.processes.run(&mut self.command(command)?)
    }

    /// The same for a program that calls the server.
    fn call_server(&self, command: &str) -> Result<()> {
        let mut program = self.command(command)?;
        program.env("CATRACA_URL", &self.served.url).env("CATRACA_KEY", &self.served.key);
        self.context.processes.run(&mut program)
    }

    fn command(&self, command: &str) -> Result<Command> {
        let mut words = command.split_whitespace();
        let name = words.next().unwrap_or_default();
        // A path starts at this folder, and a name is searched for.
        let program = if name.contains('/') { self.path.join(name) } else { name.into() };
        let mut program = self.context.repo.command(&program.display().to_string());
        program.args(words).current_dir(self.path);
        // npm asks for nothing but packages.
        program.env("NPM_CONFIG_AUDIT", "false").env("NPM_CONFIG_FUND", "false");
        program.env("NPM_CONFIG_UPDATE_NOTIFIER", "false");
        program.stdout(self.log.try_clone()?).stderr(self.log.try_clone()?);
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_shows_the_commands_that_run_here() {
        let guide = include_str!("../../docs/guide/serve.md");
        for command in go::COMMANDS.iter().chain(python::COMMANDS).chain(typescript::COMMANDS) {
            assert!(guide.contains(&format!("$ {command}\n")), "{command}");
        }
    }
}
