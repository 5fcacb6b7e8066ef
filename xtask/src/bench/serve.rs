//! What the benchmark of the server needs first: the `dist` binary, and a peer to stand beside it.
//!
//! The peer is installed by its package's name, once, below `target/`. Must not measure anything.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use catraca_conformance::{ProcessGuard, Repo, TestContext, binary, packages};

const PEER: &str = "throttlecrab-server";
const VERSION: &str = "0.4.40";
const ROOT: &str = "target/bench-peers";
/// Two builds from nothing.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// The arguments that name what was built.
pub(super) fn prepare(repo: &Repo) -> Result<Vec<String>> {
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let ours = binary::build_dist(&context)?;
    let mut args = vec!["--catraca".to_owned(), ours.display().to_string()];
    match peer(&context) {
        Ok(path) => args.extend(["--throttlecrab".to_owned(), path.display().to_string()]),
        Err(error) => eprintln!("{PEER} is left out: {error:#}"),
    }
    Ok(args)
}

/// The arguments of the benchmark of the proxy.
pub(super) fn prepare_proxy(repo: &Repo) -> Result<Vec<String>> {
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let ours = binary::build_dist(&context)?;
    let nginx = packages::need(&context, "nginx", "nginx")?;
    let paths = ["--catraca", &ours.display().to_string(), "--nginx", &nginx.display().to_string()];
    Ok(std::iter::once("--proxy").chain(paths).map(str::to_owned).collect())
}

fn peer(context: &TestContext) -> Result<PathBuf> {
    let binary = context.repo.path(&format!("{ROOT}/bin/{PEER}"));
    if !binary.is_file() {
        // Its build needs it for a protocol that is not measured here.
        packages::need(context, "protoc", "protobuf-compiler")?;
        let args = ["install", "--locked", "--root", ROOT, PEER, "--version", VERSION];
        context.processes.run(&mut context.repo.cargo(&args))?;
    }
    Ok(binary)
}
