//! `catraca serve`: the HTTP front end over an embedded store that outlives the process, or over a
//! demo catalog when none is given.
//!
//! Must not serve anything but loopback without keys to tell callers apart.

mod greeting;
mod keep;
mod kept;
mod keys;
mod locks;
mod retain;
mod secret;
mod share;
mod sharing;

use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use catraca::Catalog;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;

pub use keep::Places;
use kept::Kept;
use keys::StartKeys;
pub use sharing::Sharing;

use super::catalog;
use crate::args::Serve;
use crate::exit::Exit;
use crate::http::{Front, Live, Tls, bind, offloaded_max};
use crate::observe::Observer;
use crate::observe::traces::Traces;
use crate::regular;
use crate::reload::{Reloader, Rooms, Wish, watch};
use crate::render::tell;

/// What is served without a catalog.
const DEMO: &str = include_str!("../../../../presets/demo/catalog.toml");

/// Serves until the process is told to stop.
pub fn run(args: &Serve) -> Result<Exit> {
    let config = args.config.as_deref();
    let (catalog, name) = match config {
        Some(path) => {
            let name = path.display().to_string();
            regular::ensure(path).with_context(|| format!("cannot read {name}"))?;
            (catalog(path)?, name)
        }
        None => (demo()?, "the built-in demo".to_owned()),
    };
    let live = Live::read(&catalog).with_context(|| name.clone())?;
    let at = args.listen.unwrap_or(live.settings.listen);
    let observer =
        Arc::new(Observer::start((live.settings.log, live.settings.log_level), &catalog)?);
    let tls = certificate(&live, config).with_context(|| name.clone())?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let keys = StartKeys { present: live.guard.has_keys(), allow_none: args.allow_no_keys };
    let kept = open(catalog, config, keys, &observer, &runtime).with_context(|| name.clone())?;
    let traces = live.settings.traces.as_ref();
    let traces = traces.map(|target| Traces::start(target, runtime.handle())).transpose()?;
    let mut front = front(&kept, (live, tls), &observer, config);
    front.traces = traces.map(Arc::new);
    let traces = front.traces.clone();
    let served = runtime.block_on(serve(front, (&name, &kept.found), at));
    if let Some(traces) = traces {
        runtime.block_on(traces.close());
    }
    // A connection that did not end in time must not keep the process.
    runtime.shutdown_background();
    let closed = kept.close();
    observer.logs.close();
    closed?;
    tell(format_args!("stopped: {}", served?));
    Ok(Exit::Yes)
}

/// A catalog of one's own is worth remembering for; the demo leaves nothing behind.
fn open(
    catalog: Catalog,
    config: Option<&Path>,
    keys: StartKeys,
    observer: &Arc<Observer>,
    runtime: &Runtime,
) -> Result<Kept> {
    let places = match config {
        Some(config) => Places::read(&catalog, config.parent().unwrap_or(Path::new("")))?,
        None => None,
    };
    match places {
        Some(places) => match &places.shared {
            Some(sharing) => Kept::share(catalog, (&places, sharing), keys, observer, runtime),
            None => Kept::open(catalog, &places, keys, observer),
        },
        None => {
            let memory = keep::memory_of(&catalog)?;
            Ok(Kept::nothing(catalog, memory, observer))
        }
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

/// The certificate that connections are encrypted with, if any.
fn certificate(live: &Live, config: Option<&Path>) -> Result<Option<Arc<Tls>>> {
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    let files = live.settings.certificate(folder)?;
    files.map(|files| Tls::read(&files).map(Arc::new)).transpose()
}

fn front(
    kept: &Kept,
    (live, tls): (Live, Option<Arc<Tls>>),
    observer: &Arc<Observer>,
    config: Option<&Path>,
) -> Front {
    let live = Arc::new(ArcSwap::from_pointee(live));
    let rooms = Rooms {
        engine: Arc::clone(&kept.engine),
        records: kept.records.clone(),
        live: Arc::clone(&live),
        tls: tls.clone(),
        observer: Arc::clone(observer),
    };
    let reloader = Reloader::new(config.map(Path::to_owned), rooms);
    Front {
        engine: Arc::clone(&kept.engine),
        shared: kept.shared.clone(),
        locks: Arc::clone(&kept.locks),
        records: kept.records.clone(),
        feed: Arc::clone(&kept.feed),
        live,
        tls,
        traces: None,
        reloader: Arc::new(reloader),
        observer: Arc::clone(observer),
        resumed: kept.resumed,
        offloaded: Arc::new(Semaphore::new(offloaded_max())),
    }
}

/// Serves until it is told to stop; says what was answered.
async fn serve(front: Front, (name, found): (&str, &str), at: SocketAddr) -> Result<String> {
    // Before anything is served, so that no signal finds the usual, abrupt end.
    let mut signals = Signals::new()?;
    let hang_ups = signal(SignalKind::hangup()).context("cannot listen to signals")?;
    let (catalog, reloader) = (front.engine.catalog(), Arc::clone(&front.reloader));
    let scheme = if front.tls.is_some() { "https" } else { "http" };
    let keyed = front.live.load().guard.has_keys();
    tokio::spawn(locks::tend(Arc::downgrade(&front.locks)));
    let server = bind(at, front).await?;
    if reloader.has_file() {
        tokio::spawn(watch(Arc::clone(&reloader)));
    }
    tokio::spawn(obey(hang_ups, reloader));
    let address = format!("{scheme}://{}", server.address()?);
    let greeting = greeting::greeting(&catalog, name, found, (&address, keyed));
    // Nobody may be listening, and the server is not less useful for it.
    let _ = stdout().write_all(greeting.as_bytes()).and_then(|()| stdout().flush());
    Ok(server.serve(async || signals.next().await).await)
}

/// Reads the catalog again whenever the process is told to.
async fn obey(mut hang_ups: Signal, reloader: Arc<Reloader>) {
    while hang_ups.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // Why not is in the log, in `/readyz` and in the metrics.
        let _ = tokio::task::spawn_blocking(move || reloader.now(Wish::Signal).is_ok()).await;
    }
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
