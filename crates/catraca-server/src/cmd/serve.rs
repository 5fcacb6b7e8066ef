//! `catraca serve`: the HTTP front end over an embedded store that outlives the process, or over a
//! demo catalog when none is given.
//!
//! Must not serve anything but loopback without keys to tell callers apart.

mod greeting;
mod keep;
mod kept;
mod secret;

use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use catraca::Catalog;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use keep::Places;
use kept::Kept;

use super::catalog;
use crate::args::Serve;
use crate::exit::Exit;
use crate::http::{Front, Guard, Settings, bind};
use crate::render::tell;

/// What is served without a catalog.
const DEMO: &str = include_str!("../../../../presets/demo/catalog.toml");

/// Serves until the process is told to stop.
pub fn run(args: &Serve) -> Result<Exit> {
    let (catalog, name) = match &args.config {
        Some(path) => (catalog(path)?, path.display().to_string()),
        None => (demo()?, "the built-in demo".to_owned()),
    };
    let settings = Settings::read(&catalog).with_context(|| name.clone())?;
    let guard = Guard::read(&catalog, settings.hosts.clone()).with_context(|| name.clone())?;
    let address = args.listen.unwrap_or(settings.listen);
    let kept = open(catalog, args.config.as_deref()).with_context(|| name.clone())?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(&kept, &name, address, (settings, guard)));
    // A connection that did not end in time must not keep the process.
    runtime.shutdown_background();
    kept.close()?;
    served.map(|()| Exit::Yes)
}

/// A catalog of one's own is worth remembering for; the demo leaves nothing behind.
fn open(catalog: Catalog, config: Option<&Path>) -> Result<Kept> {
    let Some(config) = config else { return Ok(Kept::nothing(catalog)) };
    match Places::read(&catalog, config.parent().unwrap_or(Path::new("")))? {
        Some(places) => Kept::open(catalog, &places),
        None => Ok(Kept::nothing(catalog)),
    }
}

/// Every connection needs a descriptor, and many systems start programs with room for few.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, fewer connections fit; those that do are served all the same.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn demo() -> Result<Catalog> {
    Catalog::parse(DEMO).context("the built-in demo catalog")
}

async fn serve(
    kept: &Kept,
    name: &str,
    at: SocketAddr,
    (settings, guard): (Settings, Guard),
) -> Result<()> {
    // Before anything is served, so that no signal finds the usual, abrupt end.
    let mut signals = Signals::new()?;
    let keyed = guard.has_keys();
    let front = Front {
        engine: Arc::clone(&kept.engine),
        records: kept.records.clone(),
        feed: Arc::clone(&kept.feed),
        settings: Arc::new(settings),
        guard: Arc::new(guard),
    };
    let server = bind(at, front).await?;
    let (catalog, address) = (kept.engine.catalog(), server.address()?);
    let greeting = greeting::greeting(&catalog, name, &kept.found, (address, keyed));
    // Nobody may be listening, and the server is not less useful for it.
    let _ = stdout().write_all(greeting.as_bytes()).and_then(|()| stdout().flush());
    let answered = server.serve(async || signals.next().await).await;
    tell(format_args!("stopped: {answered}"));
    Ok(())
}

/// The two ways of asking the process to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
