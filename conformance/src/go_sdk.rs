//! The part `go`: the Go client in `sdk/go` and its example, against the built server.
//!
//! Must not write into the checkout, except below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{Scratch, TestContext, binary, packages};

const SDK: &str = "sdk/go";
const EXAMPLE: &str = "examples/go-http";
/// Runs the programs of the guide about migrations; it has dependencies, which the client has not.
const MIGRATION: &str = "sdk/go/migration";
/// The preset whose types are compiled and run.
const CATALOG: &str = "presets/window-block/catalog.toml";
const TYPES_PROGRAM: &str = include_str!("go_sdk/main.go");

/// The part `go`.
pub fn run(context: &TestContext) -> Result<()> {
    packages::need(context, "go", "golang-go")?;
    let go = GoTool { context, binary: binary::build(context)? };
    for folder in [SDK, EXAMPLE, MIGRATION] {
        go.check_format(folder)?;
        go.run_in(&context.repo.path(folder), "vet ./...")?;
    }
    go.run_in(&context.repo.path(SDK), "test -race -count=1 ./...")?;
    // The race detector slows the client more than the server, so the overhead is measured without.
    go.run_in(&context.repo.path(SDK), "test -count=1 -v -run Overhead .")?;
    go.run_in(&context.repo.path(EXAMPLE), "test -race -count=1 -v ./...")?;
    go.run_in(&context.repo.path(MIGRATION), "test -count=1 -v ./...")?;
    go.run_types()
}

/// Runs Go with the server under test.
struct GoTool<'a> {
    context: &'a TestContext<'a>,
    binary: PathBuf,
}

impl GoTool<'_> {
    /// Runs `go` with these arguments in a folder.
    fn run_in(&self, folder: &Path, args: &str) -> Result<()> {
        let mut go = self.command("go");
        go.args(args.split_whitespace()).current_dir(folder);
        self.context.processes.run(&mut go)
    }

    fn check_format(&self, folder: &str) -> Result<()> {
        let found = self.command("gofmt").args(["-l", folder]).output()?;
        ensure!(found.status.success(), "gofmt: {}", found.status);
        let files = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        ensure!(files.is_empty(), "run gofmt -w on {files}");
        Ok(())
    }

    /// Compiles the types of a preset, and runs a program that checks with them.
    fn run_types(&self) -> Result<()> {
        let scratch = Scratch::new("go-types")?;
        let gates = scratch.path().join("gates");
        fs::create_dir(&gates)?;
        let mut types = self.command(&self.binary.display().to_string());
        let printed = types.args(["types", "--lang", "go", "-c", CATALOG]).output()?;
        ensure!(printed.status.success(), "catraca types: {}", printed.status);
        fs::write(gates.join("gates.go"), printed.stdout)?;
        fs::write(scratch.path().join("main.go"), TYPES_PROGRAM)?;
        self.write_module(scratch.path())?;
        self.check_format(&scratch.path().display().to_string())?;
        self.run_in(scratch.path(), "vet ./...")?;
        self.run_in(scratch.path(), "run .")
    }

    /// A module beside the checkout that uses its client.
    fn write_module(&self, folder: &Path) -> Result<()> {
        let sdk = self.context.repo.path(SDK);
        let sdk = sdk.display();
        let module = format!(
            "module types\n\ngo 1.22\n\nrequire catraca-go v0.0.0\n\nreplace catraca-go => {sdk}\n"
        );
        Ok(fs::write(folder.join("go.mod"), module)?)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.context.repo.command(program);
        // The checkout may belong to another user, whom git does not trust.
        command.env("GOFLAGS", "-buildvcs=false").env("CATRACA_BIN", &self.binary);
        command
    }
}
