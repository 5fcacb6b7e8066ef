//! `catraca simulate`: a history through the engine that decides in production, in virtual time.
//!
//! The clock moves only when a line says so, and the secret is fixed, so that a run can be repeated
//! to the byte. Standard output holds results alone; what is wrong with the run goes to standard
//! error. Must not hold rules: the engine has them.

mod answer;
mod event;
mod json;
mod lines;
mod run;
mod summary;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, stdin, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use catraca::{Engine, ManualClock};

use super::SECRET;
use crate::args::{Output, Simulate};
use crate::exit::Exit;
use lines::Lines;
use run::{Run, Sink};
use summary::{Heard, Summary};

/// Bytes read and written at once.
const CHUNK: usize = 256 * 1024;

/// Replays a history; exits 2 if a line was bad.
pub fn run(args: &Simulate) -> Result<Exit> {
    let builder = Engine::builder(super::catalog(&args.catalog)?).secret(SECRET);
    let clock = ManualClock::default();
    let builder = builder.clock(clock.clone());
    let events = open(&args.events)?;
    let out = BufWriter::with_capacity(CHUNK, stdout().lock());
    let fine = match args.output {
        Output::Json => {
            let mut json = json::Json::new(out);
            replay(builder.build(), clock, events, &mut json)?
        }
        Output::Human => {
            let heard = Heard::default();
            let engine = builder.listener(heard.listener()).build();
            let mut summary = Summary::new(engine.catalog(), SECRET, heard);
            let fine = replay(engine, clock, events, &mut summary)?;
            summary.print(out)?;
            fine
        }
    };
    Ok(Exit::yes_or(fine, Exit::Wrong))
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::with_capacity(CHUNK, stdin().lock())));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(CHUNK, file)))
}

/// Feeds every line, then what is still due; says whether every line was good.
fn replay(
    engine: Engine,
    clock: ManualClock,
    events: Box<dyn BufRead>,
    sink: &mut impl Sink,
) -> Result<bool> {
    let mut lines = Lines::new(events);
    let mut run = Run::new(engine, clock, sink);
    while let Some((number, line)) = lines.next().context("cannot read the events")? {
        run.feed(number, line)?;
    }
    run.finish()
}
