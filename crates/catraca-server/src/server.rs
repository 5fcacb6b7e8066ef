//! A server: its backend, the context of its front ends, and their listeners.
//!
//! `Server::open` restores the stored state, `listen` binds an address for a front end, `run`
//! serves until a stop, and `close` writes the state to disk. No protocol is known here.

mod backend;
mod keys;
mod lock_setup;
mod panic_log;
mod records_log;
mod secret;
mod shared_store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use catraca::Catalog;
use catraca::supervise::supervise;
use tokio::runtime::{Handle, Runtime};

use backend::Backend;
use keys::StartKeys;
use panic_log::log_task_panics;

use crate::config::{LoadedCatalog, ProcessConfig, ReloadableConfig, StorageConfig, TlsFiles};
use crate::context::{CallerCounts, ServerContext};
use crate::dict_poll;
use crate::listener::tls::Tls;
use crate::listener::{Connections, FrontEnd, Listener, ListenerContext, Listeners};
use crate::observe::Observer;
use crate::observe::call_metrics::CallMetrics;
use crate::observe::proxy_metrics::ProxyMetrics;
use crate::observe::traces::Traces;
use crate::reload::{ReloadTargets, Reloader, watch};

/// What a server is started with.
pub struct ServerOptions {
    /// The catalog.
    pub catalog: LoadedCatalog,
    /// The file that the catalog was loaded from; it is watched, and the server's other files are
    /// beside it. Without a file nothing is stored.
    pub file: Option<PathBuf>,
    /// Whether the catalog may have no API keys although that of the last start had some.
    pub allow_no_keys: bool,
}

/// A server. Its front ends share one context, one set of limits and one drain.
pub struct Server {
    /// The name of the catalog, for messages.
    name: String,
    context: Arc<ServerContext>,
    listeners: Vec<Listener>,
    backend: Backend,
    runtime: Runtime,
}

impl Server {
    /// Opens the stores and restores the stored state. No request is decided before that.
    pub fn open(options: ServerOptions) -> Result<Self> {
        let ServerOptions { catalog, file, allow_no_keys } = options;
        let file = file.as_deref();
        let name = file.map_or("the built-in demo".to_owned(), |file| file.display().to_string());
        let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
        let reloadable = ReloadableConfig::new(&catalog, folder).with_context(|| name.clone())?;
        let LoadedCatalog { catalog, process, .. } = catalog;
        let log = &process.server;
        let observer = Observer::start(log.log, log.log_level, log.log_subjects, &catalog)?;
        let observer = Arc::new(observer);
        let certificates = certificates(&process, file).with_context(|| name.clone())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let keys = StartKeys { present: reloadable.guard.has_keys(), allow_none: allow_no_keys };
        let backend = open_backend(catalog, &process, file, keys, &observer, &runtime)
            .with_context(|| name.clone())?;
        let target = process.server.trace_target();
        let traces = target.map(|target| Traces::start(&target, runtime.handle())).transpose()?;
        let mut context = new_context(&backend, reloadable, certificates, &observer, file);
        context.traces = traces.map(Arc::new);
        let locks = Arc::downgrade(context.app.locks());
        let observer = Arc::clone(&context.observer);
        runtime.spawn(supervise("lock expiry", move || {
            lock_setup::expire_periodically(Weak::clone(&locks), Arc::clone(&observer))
        }));
        runtime.spawn(supervise("panic log", log_task_panics));
        Ok(Self { name, context: Arc::new(context), listeners: Vec::new(), backend, runtime })
    }

    /// What front ends work with.
    pub fn context(&self) -> &Arc<ServerContext> {
        &self.context
    }

    /// The name of the catalog, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A sentence about the stored state.
    pub fn description(&self) -> &str {
        &self.backend.description
    }

    /// The runtime of the server, for tasks beside it.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Binds an address for a front end, which serves its connections from `run` on. Returns the
    /// address with the chosen port if port 0 was asked for.
    pub fn listen<F: FrontEnd>(
        &mut self,
        address: SocketAddr,
        front_end: Arc<F>,
    ) -> Result<SocketAddr> {
        let tls = self.context.tls.clone();
        self.listen_with(address, front_end, tls)
    }

    /// The same with a certificate of its own, or without TLS.
    pub(crate) fn listen_with<F: FrontEnd>(
        &mut self,
        address: SocketAddr,
        front_end: Arc<F>,
        tls: Option<Arc<Tls>>,
    ) -> Result<SocketAddr> {
        let context = ListenerContext {
            connections: Arc::clone(&self.context.connections),
            reloadable: Arc::clone(&self.context.reloadable),
            tls,
        };
        let listener = self.runtime.block_on(Listener::bind(address, front_end, context))?;
        let address = listener.address()?;
        self.listeners.push(listener);
        Ok(address)
    }

    /// Serves on all listeners until `stop` returns, then drains them together, unless `stop`
    /// returns again. Returns a summary of the responses.
    pub fn run(&mut self, stop: impl AsyncFnMut()) -> String {
        let context = &self.context;
        let watches = context.reloadable.load().process.server.watch_files;
        if context.reloader.has_file() && watches {
            self.runtime.spawn(watch(Arc::clone(&context.reloader)));
        }
        let polling = Arc::downgrade(context);
        let poll = move || dict_poll::poll_periodically(Weak::clone(&polling));
        self.runtime.spawn(supervise("dict poll", poll));
        let app = context.app.clone();
        // Read once, so that acts know them when the records fail later. An error is ignored: acts
        // read them again, and refuse what is ambiguous.
        self.runtime.spawn(async move { drop(app.namespaces(Vec::new()).await) });
        let stop_delay = context.reloadable.load().process.server.stop_delay;
        let listeners = std::mem::take(&mut self.listeners);
        let listeners = Listeners::new(listeners, Arc::clone(&context.connections), stop_delay);
        self.runtime.block_on(listeners.serve(stop, || context.app.locks().refuse_waiters()));
        let refused: u64 = context.connections.metrics.refusals().iter().sum();
        context.calls.summary(refused)
    }

    /// Writes all state to disk, also after a listener could not be bound.
    pub fn close(self) -> Result<()> {
        let Self { context, backend, runtime, .. } = self;
        if let Some(traces) = &context.traces {
            runtime.block_on(traces.close());
        }
        // Does not wait for connections that are still open after the drain: they would delay the
        // end of the process without limit.
        runtime.shutdown_background();
        let closed = backend.close();
        // Closed before an error is returned, so that the last lines of the log are written.
        context.observer.logs.close();
        closed
    }
}

/// Opens the backend that the catalog configures; without a file nothing is stored.
fn open_backend(
    catalog: Catalog,
    process: &ProcessConfig,
    file: Option<&Path>,
    keys: StartKeys,
    observer: &Arc<Observer>,
    runtime: &Runtime,
) -> Result<Backend> {
    let config = match file {
        Some(file) => StorageConfig::resolve(process, file.parent().unwrap_or(Path::new("")))?,
        None => None,
    };
    let Some(config) = config else {
        let namespaces = process.namespaces();
        let memory = process.store.memory();
        return Ok(Backend::open_volatile(catalog, memory, namespaces, observer));
    };
    match &config.shared {
        Some(shared) => Backend::open_shared(catalog, &config, shared, keys, observer, runtime),
        None => Backend::open_local(catalog, &config, keys, observer),
    }
}

/// The TLS certificates of the server's listeners.
struct Certificates {
    server: Option<Arc<Tls>>,
    proxy: Option<Arc<Tls>>,
}

/// The TLS certificates of `[server]` and `[proxy]`, if there are any.
fn certificates(process: &ProcessConfig, file: Option<&Path>) -> Result<Certificates> {
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let read =
        |files: Option<TlsFiles>| files.map(|files| Tls::read(&files).map(Arc::new)).transpose();
    let server = read(process.server.certificate(folder))?;
    let proxy = read(process.proxy.certificate(folder))?;
    Ok(Certificates { server, proxy })
}

/// Joins the parts that requests need, and the reloader that replaces some of them.
fn new_context(
    backend: &Backend,
    reloadable: ReloadableConfig,
    certificates: Certificates,
    observer: &Arc<Observer>,
    file: Option<&Path>,
) -> ServerContext {
    let settings = &reloadable.process.server;
    let connections = Connections::new(settings.connections_max, settings.timeouts());
    let reloadable = Arc::new(ArcSwap::from_pointee(reloadable));
    let targets = ReloadTargets {
        app: backend.app.clone(),
        reloadable: Arc::clone(&reloadable),
        tls: certificates.server.clone(),
        proxy_tls: certificates.proxy.clone(),
        observer: Arc::clone(observer),
    };
    let reloader = Reloader::new(file.map(Path::to_owned), targets);
    ServerContext {
        app: backend.app.clone(),
        feed: Arc::clone(&backend.feed),
        reloadable,
        tls: certificates.server,
        proxy_tls: certificates.proxy,
        traces: None,
        reloader: Arc::new(reloader),
        connections: Arc::new(connections),
        calls: CallMetrics::default(),
        proxy_metrics: ProxyMetrics::default(),
        callers: CallerCounts::default(),
        observer: Arc::clone(observer),
        restored: backend.restored,
    }
}
