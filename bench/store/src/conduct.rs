//! The conductor: one server, rounds with every subject once, in an order that turns.

use std::time::Duration;

use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use crate::args::Plan;
use crate::load::{fill, run as load};
use crate::machine;
use crate::memory::bytes_per_key;
use crate::report::{self, Row};
use crate::subjects::{self, ScriptDigests, Subject};

/// Keys of the default case.
const KEYS: usize = 10_000;
/// Keys of the case of memory.
const FULL: usize = 2_000;

/// Measures and prints.
pub fn run(plan: &Plan) -> Result<(), String> {
    let server = RedisServer::start().ok_or("there is no redis-server: install it")?;
    machine::apart(server.pid());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let loaded = load_scripts(&server)?;
    let mut subjects = subjects::all(&loaded, KEYS);
    subjects.push(subjects::many(&loaded, plan.many));
    let mut rows = Vec::new();
    for subject in &subjects {
        runtime.block_on(fill(server.port(), &subject.commands, 1))?;
    }
    for round in 0..plan.rounds {
        for place in 0..subjects.len() {
            let subject = &subjects[(place + round) % subjects.len()];
            rows.push(one(&runtime, &server, subject, (round, plan.seconds))?);
        }
    }
    let mut memory = Vec::new();
    for subject in subjects::hours(&loaded, FULL) {
        let bytes = runtime.block_on(bytes_per_key(&server, &subject))?;
        memory.push((subject.name, bytes));
    }
    print!("{}", report::write(&rows, &subjects, &memory, plan));
    Ok(())
}

fn one(
    runtime: &Runtime,
    server: &RedisServer,
    subject: &Subject,
    (round, seconds): (usize, f64),
) -> Result<Row, String> {
    let before = machine::cpu_seconds(server.pid());
    let length = Duration::from_secs_f64(seconds);
    let done = runtime.block_on(load(server.port(), &subject.commands, length))?;
    let spent = machine::cpu_seconds(server.pid()) - before;
    let at = |share: usize| done.times.get(done.times.len() * share / 1_000).copied();
    Ok(Row {
        round,
        name: subject.name.clone(),
        rate: done.answers as f64 / done.seconds,
        cpu_us: spent * 1e6 / done.answers.max(1) as f64,
        p50_us: at(500).unwrap_or_default().into(),
        p99_us: at(990).unwrap_or_default().into(),
    })
}

fn load_scripts(server: &RedisServer) -> Result<ScriptDigests, String> {
    let load = |script: &str| match server.command(&["SCRIPT", "LOAD", script]) {
        RespValue::Bytes(digest) => Ok(digest),
        other => Err(format!("a script does not load: {other:?}")),
    };
    Ok(ScriptDigests {
        gcra: load(subjects::GCRA)?,
        sorted_set: load(subjects::SORTED_SET)?,
        ours: load(subjects::OURS)?,
    })
}
