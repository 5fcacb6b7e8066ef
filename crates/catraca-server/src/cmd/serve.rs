//! `catraca serve`: starts the server, reloads on SIGHUP, and stops on SIGINT and SIGTERM.
//!
//! Without a catalog it serves a built-in demo. Without API keys, `listener` accepts loopback
//! addresses only.

mod backend;
mod greeting;
mod keys;
mod lock_setup;
mod secret;
mod shared_store;

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

use backend::Backend;
use keys::StartKeys;

use super::catalog;
use crate::args::ServeArgs;
use crate::config::{ReloadableConfig, StorageConfig, memory_of};
use crate::context::ServerContext;
use crate::exit::Exit;
use crate::http::HttpFrontEnd;
use crate::listener::tls::Tls;
use crate::listener::{Connections, Listener, ListenerContext, Listeners};
use crate::observe::Observer;
use crate::observe::call_metrics::CallMetrics;
use crate::observe::traces::Traces;
use crate::regular_file;
use crate::reload::{ReloadCause, ReloadTargets, Reloader, watch};
use crate::render::eprint_line;

/// The catalog that is served without `--catalog`.
const DEMO: &str = include_str!("../../../../presets/demo/catalog.toml");

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<Exit> {
    let file = args.catalog.as_deref();
    let (catalog, name) = match file {
        Some(path) => {
            let name = path.display().to_string();
            regular_file::ensure(path).with_context(|| format!("cannot read {name}"))?;
            (catalog(path)?, name)
        }
        None => (demo()?, "the built-in demo".to_owned()),
    };
    let reloadable = ReloadableConfig::read(&catalog).with_context(|| name.clone())?;
    let address = args.listen.unwrap_or(reloadable.settings.listen);
    let observer = Arc::new(Observer::start(
        reloadable.settings.log,
        reloadable.settings.log_level,
        &catalog,
    )?);
    let tls = certificate(&reloadable, file).with_context(|| name.clone())?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let keys = StartKeys { present: reloadable.guard.has_keys(), allow_none: args.allow_no_keys };
    let backend =
        open_backend(catalog, file, keys, &observer, &runtime).with_context(|| name.clone())?;
    let traces = reloadable.settings.traces.as_ref();
    let traces = traces.map(|target| Traces::start(target, runtime.handle())).transpose()?;
    let traces = traces.map(Arc::new);
    let mut context = new_context(&backend, reloadable, tls, &observer, file);
    context.traces.clone_from(&traces);
    let served = runtime.block_on(serve(Arc::new(context), &name, &backend.description, address));
    if let Some(traces) = traces {
        runtime.block_on(traces.close());
    }
    // Does not wait for connections that are still open after the drain: they would delay the end
    // of the process without limit.
    runtime.shutdown_background();
    let closed = backend.close();
    // Closed before the error is returned, so that the last lines of the log are written.
    observer.logs.close();
    closed?;
    eprint_line(format_args!("stopped: {}", served?));
    Ok(Exit::Yes)
}

/// Opens the backend that the catalog configures; the demo stores nothing.
fn open_backend(
    catalog: Catalog,
    file: Option<&Path>,
    keys: StartKeys,
    observer: &Arc<Observer>,
    runtime: &Runtime,
) -> Result<Backend> {
    let config = match file {
        Some(file) => StorageConfig::read(&catalog, file.parent().unwrap_or(Path::new("")))?,
        None => None,
    };
    let Some(config) = config else {
        let memory = memory_of(&catalog)?;
        return Ok(Backend::open_volatile(catalog, memory, observer));
    };
    match &config.shared {
        Some(shared) => Backend::open_shared(catalog, &config, shared, keys, observer, runtime),
        None => Backend::open_local(catalog, &config, keys, observer),
    }
}

/// Raises the soft limit of file descriptors to the hard one: each connection needs one, and the
/// default soft limit is often 1024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // On failure the server works with fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn demo() -> Result<Catalog> {
    Catalog::parse(DEMO).context("the built-in demo catalog")
}

/// The TLS certificate of `[server]`, if there is one.
fn certificate(reloadable: &ReloadableConfig, file: Option<&Path>) -> Result<Option<Arc<Tls>>> {
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let files = reloadable.settings.certificate(folder)?;
    files.map(|files| Tls::read(&files).map(Arc::new)).transpose()
}

/// Joins the parts that requests need, and the reloader that replaces some of them.
fn new_context(
    backend: &Backend,
    reloadable: ReloadableConfig,
    tls: Option<Arc<Tls>>,
    observer: &Arc<Observer>,
    file: Option<&Path>,
) -> ServerContext {
    let settings = &reloadable.settings;
    let connections = Connections::new(settings.connections_max, settings.timeouts);
    let reloadable = Arc::new(ArcSwap::from_pointee(reloadable));
    let targets = ReloadTargets {
        app: backend.app.clone(),
        reloadable: Arc::clone(&reloadable),
        tls: tls.clone(),
        observer: Arc::clone(observer),
    };
    let reloader = Reloader::new(file.map(Path::to_owned), targets);
    ServerContext {
        app: backend.app.clone(),
        locks: Arc::clone(&backend.locks),
        feed: Arc::clone(&backend.feed),
        reloadable,
        tls,
        traces: None,
        reloader: Arc::new(reloader),
        connections: Arc::new(connections),
        calls: CallMetrics::default(),
        observer: Arc::clone(observer),
        restored: backend.restored,
    }
}

/// Serves until a signal; returns a summary for the last message.
async fn serve(
    context: Arc<ServerContext>,
    name: &str,
    state: &str,
    address: SocketAddr,
) -> Result<String> {
    // Handlers are installed before the listener is bound: an earlier signal would kill the process
    // without writing the snapshot.
    let mut signals = Signals::new()?;
    let hang_ups = signal(SignalKind::hangup()).context("cannot listen to signals")?;
    let catalog = context.app.catalog();
    let reloader = Arc::clone(&context.reloader);
    let scheme = if context.tls.is_some() { "https" } else { "http" };
    let needs_key = context.reloadable.load().guard.has_keys();
    tokio::spawn(lock_setup::expire_periodically(Arc::downgrade(&context.locks)));
    let front_end = Arc::new(HttpFrontEnd::new(Arc::clone(&context)));
    let listener = Listener::bind(address, front_end, listener_context(&context)).await?;
    let is_demo = !reloader.has_file();
    if !is_demo {
        tokio::spawn(watch(Arc::clone(&reloader)));
    }
    tokio::spawn(reload_on_hang_up(hang_ups, reloader));
    // The address of the listener: it has the chosen port when port 0 was asked for.
    let url = format!("{scheme}://{}", listener.address()?);
    let greeting = greeting::greeting(&catalog, name, state, &url, needs_key, is_demo);
    // Standard output may be closed; the server runs all the same.
    let _ = stdout().write_all(greeting.as_bytes()).and_then(|()| stdout().flush());
    let stop_delay = context.reloadable.load().settings.stop_delay;
    let listeners = Listeners::new(vec![listener], Arc::clone(&context.connections), stop_delay);
    listeners.serve(async || signals.next().await, || context.locks.refuse_waiters()).await;
    let refused: u64 = context.connections.metrics.refusals().iter().sum();
    Ok(context.calls.summary(refused))
}

fn listener_context(context: &ServerContext) -> ListenerContext {
    ListenerContext {
        connections: Arc::clone(&context.connections),
        reloadable: Arc::clone(&context.reloadable),
        tls: context.tls.clone(),
    }
}

/// Reloads the catalog on every SIGHUP.
async fn reload_on_hang_up(mut hang_ups: Signal, reloader: Arc<Reloader>) {
    while hang_ups.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // The reloader reports an error in the log, in `/readyz` and in the metrics.
        let _ =
            tokio::task::spawn_blocking(move || reloader.reload(ReloadCause::Signal).is_ok()).await;
    }
}

/// The signals that stop the server.
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
