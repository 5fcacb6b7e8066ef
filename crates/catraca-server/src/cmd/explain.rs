//! `catraca explain`: which policies a request meets, with which key, tier and price, and why.
//!
//! Must not look at state: the answer is about the catalog alone.

mod json;
mod words;

use std::io::{Write, stdout};

use anyhow::Result;
use catraca::{Check, Engine, Subject};

use super::SECRET;
use crate::args::{Explain, Output};
use crate::exit::Exit;
use crate::render::Paint;

/// Explains one request.
pub fn run(args: &Explain) -> Result<Exit> {
    let engine = Engine::builder(super::catalog(&args.catalog)?).secret(SECRET).build();
    let pairs = args.subject.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut check = Check::new(&args.gate, pairs.collect::<Subject<'_>>());
    check.cost = args.cost;
    let explained = engine.explain(&check)?;
    let mut out = stdout().lock();
    match args.output {
        Output::Human => {
            let catalog = engine.catalog();
            words::Words { catalog: &catalog, paint: Paint::for_stdout() }
                .print(&mut out, &explained)?;
        }
        Output::Json => {
            serde_json::to_writer(&mut out, &json::shape(&explained))?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Yes)
}
