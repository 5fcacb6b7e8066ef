//! `catraca serve`: the HTTP front end over an embedded store, with a demo catalog when none is
//! given.
//!
//! Must not serve anything but loopback until there are keys to tell callers apart.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use catraca::core::policy::{Part, Policy, Who};
use catraca::{Catalog, Engine, explain};

use super::catalog;
use crate::args::Serve;
use crate::exit::Exit;
use crate::http::{Front, Settings, bind};

/// What is served without a catalog.
const DEMO: &str = include_str!("../../../../presets/demo/catalog.toml");
/// Where it is served unless the catalog or the command line says otherwise.
const ADDRESS: &str = "127.0.0.1:7878";

/// Serves until the process is told to stop.
pub fn run(args: &Serve) -> Result<Exit> {
    let (catalog, name) = match &args.config {
        Some(path) => (catalog(path)?, path.display().to_string()),
        None => (demo()?, "the built-in demo".to_owned()),
    };
    let address = address(args.listen, &catalog)?;
    let settings = settings(&catalog)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(catalog, &name, address, settings))?;
    Ok(Exit::Yes)
}

fn demo() -> Result<Catalog> {
    Catalog::parse(DEMO).context("the built-in demo catalog")
}

async fn serve(catalog: Catalog, name: &str, at: SocketAddr, settings: Settings) -> Result<()> {
    let engine = Arc::new(Engine::new(catalog));
    let front = Front { engine: Arc::clone(&engine), settings: Arc::new(settings) };
    let server = bind(at, front).await?;
    greet(&engine.catalog(), name, server.address()?);
    server.serve(stopped()).await;
    eprintln!("stopped");
    Ok(())
}

/// The address of the command line, else of `[server] listen`, else the usual one.
fn address(asked: Option<SocketAddr>, catalog: &Catalog) -> Result<SocketAddr> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let written = section(catalog, "listen").and_then(|value| value.as_str());
    let text = written.unwrap_or(ADDRESS);
    text.parse().with_context(|| {
        format!("[server] listen = {text:?} is not an address and port, such as {ADDRESS:?}")
    })
}

fn settings(catalog: &Catalog) -> Result<Settings> {
    let x_ratelimit = match section(catalog, "x_ratelimit") {
        Some(value) => value.as_bool().context("[server] x_ratelimit is true or false")?,
        None => false,
    };
    Ok(Settings { x_ratelimit, trusted_proxies: catalog.network.trusted_proxies.clone() })
}

fn section<'c>(catalog: &'c Catalog, field: &str) -> Option<&'c toml::Value> {
    catalog.settings.sections.get("server")?.get(field)
}

/// What a person needs to know, and something to paste.
fn greet(catalog: &Catalog, name: &str, address: SocketAddr) {
    let gate = catalog.policies.first().map_or("demo", |policy| &*policy.name);
    println!("Catraca {} listens on http://{address}\n", env!("CARGO_PKG_VERSION"));
    println!("It serves {name}, revision {}:", catalog.revision);
    for policy in &catalog.policies {
        println!("  {:<12} {}", policy.name, in_words(policy));
    }
    println!("\nTry it, six times:\n  curl -i 'http://{address}/v1/authorize?gate={gate}'");
    println!("\nCtrl-C stops it. `catraca serve --config FILE` serves your own catalog.");
}

fn in_words(policy: &Policy) -> String {
    let limit = policy.base.as_ref().map(|terms| explain::limit(&terms.limit));
    let limit = limit.unwrap_or_else(|| "by tier".to_owned());
    format!("{limit}, by {}", who(&policy.who))
}

fn who(who: &Who) -> String {
    match who {
        Who::By(parts) if parts.is_empty() => "everybody together".to_owned(),
        Who::By(parts) => {
            let part = |part: &Part| part.join(" or ");
            parts.iter().map(part).collect::<Vec<_>>().join(" and ")
        }
        Who::Each(names) => format!("each of {}", names.join(", ")),
    }
}

/// Done when the process is asked to stop.
async fn stopped() {
    let interrupt = tokio::signal::ctrl_c();
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt => {}
        () = terminate => {}
    }
}
