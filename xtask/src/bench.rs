//! Runs a benchmark: its own crate under `bench/`, or one of ours over the `dist` binary.
//!
//! Benchmarks that bring peers as dependencies live outside the workspace. Must not judge a figure:
//! it prints, people read.

mod client;
mod locks;
mod restart;
mod serve;
mod server;
mod simulate;
mod store;

use anyhow::{Context, Result, ensure};
use catraca_conformance::Repo;

/// `cargo xtask bench NAME [ARG...]`
pub(crate) fn bench(repo: &Repo, args: &[String]) -> Result<()> {
    let (name, rest) = args.split_first().context("which benchmark? e.g. `bench core`")?;
    if name == "simulate" {
        return simulate::run(repo, rest);
    }
    if name == "locks" {
        return locks::run(repo, rest);
    }
    if name == "restart" {
        return restart::run(repo, rest);
    }
    // The benchmark of the proxy has the load driver of the one of the server.
    let folder = if name == "proxy" { "serve" } else { name };
    let manifest = format!("bench/{folder}/Cargo.toml");
    ensure!(
        repo.path(&manifest).is_file(),
        "there is no benchmark `{name}`: {manifest} is missing"
    );
    let mut args = rest.to_vec();
    match name.as_str() {
        "client" => args.extend(client::prepare(repo)?),
        "proxy" => args.extend(serve::prepare_proxy(repo)?),
        "serve" => args.extend(serve::prepare(repo)?),
        "store" => store::prepare(repo)?,
        _ => {}
    }
    let status = repo
        .cargo(&["run", "--release", "--manifest-path", &manifest, "--"])
        .args(args)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "benchmark `{name}`: {status}");
    Ok(())
}
