//! Runs one trace through the script and through core, and compares every reply.
//!
//! Batches are pipelined: core runs them first, since a trace does not depend on the script's
//! replies. The first figure that differs ends the trace.

use catraca::redis::{ScriptArgs, decode_reply};
use catraca_core::batch::{Batch, Reply};
use catraca_core::run::run;
use catraca_core::time::Time;
use catraca_testkit::reference_cells::ReferenceCells;
use catraca_testkit::resp::{RespClient, RespValue};

use super::coverage::Coverage;
use super::edges;
use crate::random::Random;

/// Batches per pipeline.
const DEPTH: usize = 200;
/// The prefix of every key.
pub const TAG: &[u8] = b"{t}";
/// The deadline of a batch, after which the script refuses it: 2^53 - 1, that is never.
const NEVER_LATE: &[u8] = b"9007199254740991";

/// A batch that was sent, and core's reply.
struct Pending {
    number: usize,
    batch: Batch,
    now: Time,
    ours: Reply,
}

/// Runs at least `each` batches of every kind; the error describes the first difference.
pub fn compare(
    client: &mut RespClient,
    script: &str,
    seed: u64,
    each: usize,
) -> Result<Coverage, String> {
    command(client, &[b"FLUSHALL"])?;
    let sha = load(client, script)?;
    let mut random = Random::new(seed);
    let mut cells = ReferenceCells::default();
    let mut seen = Coverage::default();
    let mut pending = Vec::new();
    for (batch, now) in edges::batches() {
        let ours = run(&batch, &mut cells, now);
        let theirs = apply(client, &sha, &batch, Some(now))?;
        if theirs != ours {
            return Err(format!("at {}: core: {ours:#?}\nscript: {theirs:#?}", now.micros()));
        }
    }
    while random.counts().iter().any(|count| *count < each) {
        for _ in 0..DEPTH {
            let (batch, now) = random.step();
            let ours = run(&batch, &mut cells, now);
            random.learn(&batch, &ours);
            seen.count(&ours);
            queue(client, &sha, &batch, Some(now));
            pending.push(Pending { number: random.counts().iter().sum(), batch, now, ours });
        }
        // All replies are read even after a difference, so that the connection can be used again.
        let results: Vec<_> = pending.drain(..).map(|sent| answer(client, &sent)).collect();
        let results: Result<(), String> = results.into_iter().collect();
        results.map_err(|error| format!("seed {seed}, {error}"))?;
    }
    Ok(seen)
}

fn answer(client: &mut RespClient, sent: &Pending) -> Result<(), String> {
    let theirs = receive(client, &sent.batch);
    if theirs.as_ref() == Ok(&sent.ours) {
        return Ok(());
    }
    let Pending { number, batch, now, ours } = sent;
    let at = now.micros();
    Err(format!("step {number}, at {at}: {batch:#?}\ncore:   {ours:#?}\nscript: {theirs:#?}"))
}

/// Loads a script; returns its SHA-1 digest.
pub fn load(client: &mut RespClient, script: &str) -> Result<Vec<u8>, String> {
    match command(client, &[b"SCRIPT", b"LOAD", script.as_bytes()])? {
        RespValue::Bytes(sha) => Ok(sha),
        other => Err(format!("not a digest: {other:?}")),
    }
}

/// Sends one command; an error reply is an error.
pub fn command(client: &mut RespClient, parts: &[&[u8]]) -> Result<RespValue, String> {
    client.queue(parts);
    value(client)
}

/// Applies one batch with the script, at an instant or at the time of the server's clock.
pub fn apply(
    client: &mut RespClient,
    sha: &[u8],
    batch: &Batch,
    now: Option<Time>,
) -> Result<Reply, String> {
    queue(client, sha, batch, now);
    receive(client, batch)
}

fn queue(client: &mut RespClient, sha: &[u8], batch: &Batch, now: Option<Time>) {
    let call = ScriptArgs::new(TAG, batch);
    let count = call.keys().len().to_string();
    let now = now.map(|now| now.micros().to_string());
    let mut parts: Vec<&[u8]> = vec![b"EVALSHA", sha, count.as_bytes()];
    parts.extend(call.keys());
    parts.extend([call.batch(), NEVER_LATE]);
    parts.extend(now.iter().map(String::as_bytes));
    client.queue(&parts);
}

fn receive(client: &mut RespClient, batch: &Batch) -> Result<Reply, String> {
    match value(client)? {
        RespValue::Bytes(bytes) => decode_reply(batch, &bytes).map_err(|error| error.to_string()),
        other => Err(format!("no reply: {other:?}")),
    }
}

/// Reads one reply. Panics if the server does not answer: it would not answer the next batch
/// either.
fn value(client: &mut RespClient) -> Result<RespValue, String> {
    let value = client.receive();
    match value.unwrap_or_else(|error| panic!("the server gave no answer: {error}")) {
        RespValue::Error(error) => Err(error),
        value => Ok(value),
    }
}
