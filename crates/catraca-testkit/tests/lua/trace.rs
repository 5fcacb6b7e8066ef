//! One trace through the script and through core, compared answer by answer.
//!
//! Core runs ahead by as many batches as go out together; a trace does not depend on the server's
//! answers. Must not forgive: the first figure that differs ends the trace.

use catraca::redis::{ScriptArgs, decode_reply};
use catraca_core::batch::{Batch, Reply};
use catraca_core::run::run;
use catraca_core::time::Time;
use catraca_testkit::reference_cells::ReferenceCells;
use catraca_testkit::resp::{RespClient, RespValue};

use super::random::Random;
use super::seen::Seen;

/// Batches that go out together.
const DEPTH: usize = 200;
/// What every key begins with.
pub const TAG: &[u8] = b"{t}";
/// The latest instant at which a batch may be done: 2^53 - 1.
const NEVER_LATE: &[u8] = b"9007199254740991";

/// A batch on its way, and what core answered.
struct Pending {
    number: usize,
    batch: Batch,
    now: Time,
    ours: Reply,
}

/// Runs at least so many batches of each kind; the error tells the first difference.
pub fn compare(client: &mut RespClient, script: &str, seed: u64, each: usize) -> Result<Seen, String> {
    command(client, &[b"FLUSHALL"])?;
    let sha = load(client, script)?;
    let (mut random, mut cells, mut seen) =
        (Random::new(seed), ReferenceCells::default(), Seen::default());
    let mut pending = Vec::new();
    while random.told().iter().any(|told| *told < each) {
        for _ in 0..DEPTH {
            let (batch, now) = random.step();
            let ours = run(&batch, &mut cells, now);
            random.heard(&batch, &ours);
            seen.count(&ours);
            queue(client, &sha, &batch, Some(now));
            pending.push(Pending { number: random.told().iter().sum(), batch, now, ours });
        }
        // All of them are read, so that who comes next finds nothing on the line.
        let told: Vec<_> = pending.drain(..).map(|sent| answer(client, &sent)).collect();
        let told: Result<(), String> = told.into_iter().collect();
        told.map_err(|told| format!("seed {seed}, {told}"))?;
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

/// Loads a script; returns its digest.
pub fn load(client: &mut RespClient, script: &str) -> Result<Vec<u8>, String> {
    match command(client, &[b"SCRIPT", b"LOAD", script.as_bytes()])? {
        RespValue::Bytes(sha) => Ok(sha),
        other => Err(format!("not a digest: {other:?}")),
    }
}

/// One command; a refusal is an error.
pub fn command(client: &mut RespClient, parts: &[&[u8]]) -> Result<RespValue, String> {
    client.queue(parts);
    value(client)
}

/// One batch by the script, at an instant or at the server's own.
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
    let (count, now) = (call.keys().len().to_string(), now.map(|now| now.micros().to_string()));
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

/// A server that does not answer ends the test: it will not answer the next batch either.
fn value(client: &mut RespClient) -> Result<RespValue, String> {
    let value = client.receive();
    match value.unwrap_or_else(|error| panic!("the server gave no answer: {error}")) {
        RespValue::Error(error) => Err(error),
        value => Ok(value),
    }
}
