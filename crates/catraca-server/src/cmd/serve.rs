//! `catraca serve`: starts the server, reloads on SIGHUP, and stops on SIGINT and SIGTERM.
//!
//! Without a catalog it serves a built-in demo. Without API keys, a listener accepts loopback
//! addresses only.

mod greeting;

use std::io::{Write, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use catraca::{Check, Reason};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::load_catalog;
use crate::args::ServeArgs;
use crate::config::{self, LoadedCatalog};
use crate::exit::Exit;
use crate::http::HttpFrontEnd;
use crate::proxy::ProxyFrontEnd;
use crate::regular_file;
use crate::reload::{ReloadCause, Reloader};
use crate::render::eprint_line;
use crate::server::{Server, ServerOptions};
use greeting::{Addresses, RunTimeState, greeting};

/// The address of a caller on this machine.
const LOOPBACK: &str = "127.0.0.1";
/// The catalog that is served without `--catalog`.
const DEMO: &str = include_str!("../../../../presets/demo/catalog.toml");

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<Exit> {
    let file = args.catalog.clone().or_else(|| args.file.clone());
    let catalog = match file.as_deref() {
        Some(path) => {
            let cannot_read = || format!("cannot read {}", path.display());
            regular_file::ensure(path).with_context(cannot_read)?;
            load_catalog(path)?
        }
        None => demo()?,
    };
    raise_descriptor_limit();
    let options = ServerOptions { catalog, file, allow_no_keys: args.allow_no_keys };
    let mut server = Server::open(options)?;
    let port = args.port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let served = serve(&mut server, args.listen.or(port));
    server.close()?;
    eprint_line(format_args!("stopped: {}", served?));
    Ok(Exit::Yes)
}

/// Serves until a signal; returns a summary for the last message.
fn serve(server: &mut Server, address: Option<SocketAddr>) -> Result<String> {
    let context = Arc::clone(server.context());
    let runtime = server.handle().clone();
    let entered = runtime.enter();
    // Handlers are installed before a listener is bound: an earlier signal would kill the process
    // without writing the snapshot.
    let mut signals = Signals::new()?;
    let hang_ups = signal(SignalKind::hangup()).context("cannot listen to signals")?;
    drop(entered);
    let catalog = context.app.catalog();
    let needs_key = context.reloadable.load().guard.has_keys();
    let address = address.unwrap_or_else(|| context.reloadable.load().process.server.listen);
    let http = Arc::new(HttpFrontEnd::new(Arc::clone(&context)));
    let address = server.listen(address, http)?;
    let proxy = listen_as_proxy(server)?;
    runtime.spawn(reload_on_hang_up(hang_ups, Arc::clone(&context.reloader)));
    let scheme = if context.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    let is_demo = !context.reloader.has_file();
    let addresses = Addresses { url, proxy };
    let admits_by_limit = |gate: &str| {
        let peeked = runtime.block_on(context.app.peek(&Check::new(gate, [("ip", LOOPBACK)])));
        peeked.is_ok_and(|decision| decision.reason == Reason::Ok)
    };
    let state = RunTimeState {
        description: server.description(),
        mode_override: &|policy| context.app.engine().mode_override(policy),
        admits_by_limit: &admits_by_limit,
    };
    let greeting = greeting(&catalog, server.name(), state, &addresses, needs_key, is_demo);
    // Standard output may be closed; the server runs all the same.
    let _ = stdout().write_all(greeting.as_bytes()).and_then(|()| stdout().flush());
    Ok(server.run(async || signals.next().await))
}

/// Starts the reverse proxy of `[proxy] listen`, if there is one; returns its URL.
fn listen_as_proxy(server: &mut Server) -> Result<Option<String>> {
    let context = Arc::clone(server.context());
    let Some(address) = context.reloadable.load().process.proxy.listen else { return Ok(None) };
    let scheme = if context.proxy_tls.is_some() { "https" } else { "http" };
    let tls = context.proxy_tls.clone();
    let proxy = Arc::new(ProxyFrontEnd::new(context, server.handle()));
    let address = server.listen_with(address, proxy, tls)?;
    Ok(Some(format!("{scheme}://{address}")))
}

/// Raises the soft limit of file descriptors to the hard one: each connection needs one, and the
/// default soft limit is often 1024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // On failure the server works with fewer connections.
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        let now = limit.current.map_or("unlimited".to_owned(), |files| files.to_string());
        eprint_line(format_args!("the limit of open files stays {now}: {error}"));
    }
}

fn demo() -> Result<LoadedCatalog> {
    config::parse(DEMO).context("the built-in demo catalog")
}

/// Reloads the catalog on every SIGHUP.
async fn reload_on_hang_up(mut hang_ups: Signal, reloader: Arc<Reloader>) {
    while hang_ups.recv().await.is_some() {
        let reloader = Arc::clone(&reloader);
        // The reloader reports an error in the log, in `/readyz` and in the metrics.
        let reload = move || reloader.reload(ReloadCause::Signal).is_ok();
        if let Err(error) = tokio::task::spawn_blocking(reload).await {
            tracing::error!(%error, "the reload ordered by SIGHUP did not finish");
        }
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
