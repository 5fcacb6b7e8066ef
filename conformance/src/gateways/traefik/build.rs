//! Builds Traefik from the registry of Go modules, once per machine, below `target/`.
//!
//! Its command cannot be installed with `go install`, because its module has `replace` directives:
//! it is built in its folder of the module cache. Must not write into that cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{TestContext, packages};

const MODULE: &str = "github.com/traefik/traefik/v3@v3.6.12";
const HOME: &str = "target/traefik/v3.6.12";
/// The client of certificate authorities, and its file that names all DNS providers.
const LEGO: &str = "github.com/go-acme/lego/v4";
const PROVIDERS: &str = "providers/dns/zz_gen_dns_providers.go";
const NO_PROVIDERS: &str = include_str!("dns.go");

/// The path of the program; built if it is missing and the machine can.
pub(crate) fn need(context: &TestContext) -> Result<PathBuf> {
    let home = context.repo.path(HOME);
    let program = home.join("traefik");
    if program.is_file() {
        return Ok(program);
    }
    packages::need(context, "go", "golang-go")?;
    fs::create_dir_all(&home)?;
    let source = download(go(context), MODULE)?;
    let lego = copy_lego(context, &source, &home)?;
    let modules = write_modules(&source, &home, &lego)?;
    let mut build = go(context);
    build.current_dir(source).arg("build").arg("-modfile").arg(modules);
    context.processes.run(build.arg("-o").arg(&program).arg("./cmd/traefik"))?;
    Ok(program)
}

/// The folder of a module in the cache.
fn download(mut go: Command, module: &str) -> Result<PathBuf> {
    let found = go.args(["mod", "download", "-json", module]).output()?;
    ensure!(found.status.success(), "cannot download {module}: {}", found.status);
    let module: Value = serde_json::from_slice(&found.stdout)?;
    let folder = module["Dir"].as_str().context("go names no folder of the module")?;
    Ok(PathBuf::from(folder))
}

/// A copy without DNS providers; files of the cache are read-only.
fn copy_lego(context: &TestContext, source: &Path, home: &Path) -> Result<PathBuf> {
    let mut go = go(context);
    go.current_dir(source);
    let original = download(go, LEGO)?;
    let copy = home.join("lego");
    let mut cp = context.repo.command("cp");
    cp.args(["-r", "--no-preserve=mode", "-T"]).arg(original).arg(&copy);
    context.processes.run(&mut cp)?;
    fs::write(copy.join(PROVIDERS), NO_PROVIDERS)?;
    Ok(copy)
}

/// Traefik's list of modules, with the copy of lego in place of the original.
fn write_modules(source: &Path, home: &Path, lego: &Path) -> Result<PathBuf> {
    let own = fs::read_to_string(source.join("go.mod"))?;
    let modules = home.join("go.mod");
    fs::write(&modules, format!("{own}\nreplace {LEGO} => {}\n", lego.display()))?;
    fs::write(home.join("go.sum"), fs::read(source.join("go.sum"))?)?;
    Ok(modules)
}

fn go(context: &TestContext) -> Command {
    let mut go = context.repo.command("go");
    go.env("GOFLAGS", "-buildvcs=false");
    go
}
