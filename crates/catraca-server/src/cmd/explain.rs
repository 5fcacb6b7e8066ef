//! `catraca explain`: which policies apply to a request, with which key, tier and price, and why.
//!
//! The explanation depends on the catalog alone; no counters are read.

mod explanation_json;
mod explanation_text;
mod request;

use std::io::Write;

use anyhow::{Result, anyhow};
use catraca::{Catalog, Check, Engine, Error, Refusal, Subject};

use super::refuse_repeated;
use super::secret::secret;
use crate::args::{ExplainArgs, Output};
use crate::exit::Exit;
use crate::render::{Paint, StdoutPipe};
use request::ExplainRequest;

/// Explains one request.
pub fn run(args: &ExplainArgs) -> Result<Exit> {
    let engine = Engine::builder(super::catalog(&args.catalog)?).secret(secret()).build();
    let request = ExplainRequest::read(&engine.catalog(), &args.gate, &args.operands)?;
    let pairs = request.subject.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut check = Check::new(&request.gate, pairs.collect::<Subject<'_>>());
    check.cost = args.cost;
    check.lists = !request.route.as_ref().is_some_and(|route| route.skips_lists);
    let explained =
        engine.explain(&check).map_err(|error| with_nearest_gate(error, &engine.catalog()))?;
    let mut out = StdoutPipe::stdout();
    match args.output {
        Output::Human => {
            let catalog = engine.catalog();
            write!(out, "{}", explanation_text::describe_route(request.route.as_ref()))?;
            explanation_text::ExplanationPrinter { catalog: &catalog, paint: Paint::for_stdout() }
                .print(&mut out, &explained)?;
        }
        Output::Json => {
            serde_json::to_writer(
                &mut out,
                &explanation_json::to_json(&explained, request.route.as_ref()),
            )?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Yes)
}

/// Adds the nearest known gate to the error for an unknown one.
fn with_nearest_gate(error: Error, catalog: &Catalog) -> anyhow::Error {
    let nearest = match &error {
        Error::Refused(Refusal::UnknownGate(name)) => catalog.nearest_gate(name),
        _ => None,
    };
    match nearest {
        Some(nearest) => anyhow!("{error}: did you mean `{nearest}`?"),
        None => error.into(),
    }
}
