//! `catraca explain`: which policies a request meets, with which key, tier and price, and why.
//!
//! Must not look at state: the answer is about the catalog alone.

mod json;
mod request;
mod words;

use std::io::Write;

use anyhow::{Result, anyhow};
use catraca::{Catalog, Check, Engine, Error, Refusal, Subject};

use super::refuse_repeated;
use super::secret::secret;
use crate::args::{Explain, Output};
use crate::exit::Exit;
use crate::render::{Outlet, Paint};
use request::Asked;

/// Explains one request.
pub fn run(args: &Explain) -> Result<Exit> {
    let engine = Engine::builder(super::catalog(&args.catalog)?).secret(secret()).build();
    let asked = Asked::read(&engine.catalog(), &args.gate, &args.told)?;
    let pairs = asked.subject.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut check = Check::new(&asked.gate, pairs.collect::<Subject<'_>>());
    check.cost = args.cost;
    let explained = engine.explain(&check).map_err(|error| meant(error, &engine.catalog()))?;
    let mut out = Outlet::stdout();
    match args.output {
        Output::Human => {
            let catalog = engine.catalog();
            write!(out, "{}", words::way(asked.way.as_ref()))?;
            words::Words { catalog: &catalog, paint: Paint::for_stdout() }
                .print(&mut out, &explained)?;
        }
        Output::Json => {
            serde_json::to_writer(&mut out, &json::shape(&explained, asked.way.as_ref()))?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Yes)
}

/// An unknown gate is often a known one, misspelt.
fn meant(error: Error, catalog: &Catalog) -> anyhow::Error {
    let near = match &error {
        Error::Refused(Refusal::UnknownGate(name)) => catalog.nearest_gate(name),
        _ => None,
    };
    match near {
        Some(near) => anyhow!("{error}: did you mean `{near}`?"),
        None => error.into(),
    }
}
