//! One trace through the script and through core, compared answer by answer.
//!
//! Must not forgive: the first figure that differs ends the trace.

use catraca_core::batch::{Batch, BlockRow, Check, CheckReply, Reply, Verdict};
use catraca_core::cell::block::Act;
use catraca_core::cell::{Block, Pool};
use catraca_core::digest::Key;
use catraca_core::run::run;
use catraca_core::time::Time;
use catraca_testkit::plain::PlainCells;
use catraca_testkit::resp::{Client, Value};

use super::random::{Random, Step};
use super::wire;

/// How often each thing was seen, to know that a trace has been everywhere.
#[derive(Debug, Default)]
pub struct Seen {
    pub verdicts: [usize; 4],
    pub charged: usize,
    pub started: usize,
    pub passed: usize,
    pub moved: usize,
}

/// The script on a server, beside core.
pub struct Twins<'a> {
    client: &'a mut Client,
    sha: Vec<u8>,
    cells: PlainCells,
    seen: Seen,
}

/// Runs `steps` operations of a seed; the error tells the first difference.
pub fn compare(client: &mut Client, script: &str, seed: u64, steps: usize) -> Result<Seen, String> {
    command(client, &[b"FLUSHALL"])?;
    let sha = load(client, script)?;
    let mut twins = Twins { client, sha, cells: PlainCells::default(), seen: Seen::default() };
    let mut random = Random::new(seed);
    for number in 0..steps {
        let (step, now) = random.step();
        let told = twins.apply(&step, now, &mut random);
        told.map_err(|told| format!("seed {seed}, step {number}, at {}: {told}", now.micros()))?;
    }
    Ok(twins.seen)
}

/// Loads a script; returns its digest.
pub fn load(client: &mut Client, script: &str) -> Result<Vec<u8>, String> {
    match command(client, &[b"SCRIPT", b"LOAD", script.as_bytes()])? {
        Value::Bytes(sha) => Ok(sha),
        other => Err(format!("not a digest: {other:?}")),
    }
}

/// One command; a refusal is an error.
pub fn command(client: &mut Client, parts: &[&[u8]]) -> Result<Value, String> {
    match client.call(parts).map_err(|error| error.to_string())? {
        Value::Error(error) => Err(error),
        value => Ok(value),
    }
}

/// One check by the script, at an instant or at the server's own.
pub fn check(
    client: &mut Client,
    sha: &[u8],
    check: &Check,
    now: Option<Time>,
) -> Result<CheckReply, String> {
    let (keys, batch) = (wire::keys(check), wire::pack(check));
    let (count, now) = (keys.len().to_string(), now.map(|now| now.micros().to_string()));
    let mut parts: Vec<&[u8]> = vec![b"EVALSHA", sha, count.as_bytes()];
    parts.extend(keys.iter().map(Vec::as_slice));
    parts.push(&batch);
    parts.extend(now.iter().map(String::as_bytes));
    wire::read(command(client, &parts)?)
}

impl Twins<'_> {
    fn apply(&mut self, step: &Step, now: Time, random: &mut Random) -> Result<(), String> {
        match step {
            Step::Check(batch) => self.check(batch, now, random),
            Step::Block(key, act) => self.block(*key, act, now),
            Step::Reset(key) => self.reset(*key, now),
        }
    }

    fn check(&mut self, batch: &Check, now: Time, random: &mut Random) -> Result<(), String> {
        let theirs = check(self.client, &self.sha, batch, Some(now));
        let Reply::Check(ours) = run(&Batch::Check(batch.clone()), &mut self.cells, now) else {
            return Err("core answered something else".to_owned());
        };
        if theirs.as_ref() != Ok(&ours) {
            return Err(format!("{batch:#?}\ncore:   {ours:#?}\nscript: {theirs:#?}"));
        }
        self.count(&ours);
        random.heard(&ours);
        Ok(())
    }

    /// The script has no blocks of others yet: core makes them, in the script's own layout.
    fn block(&mut self, key: Key, act: &Act, now: Time) -> Result<(), String> {
        run(&Batch::Block(vec![BlockRow { key, act: act.clone() }]), &mut self.cells, now);
        let block: Option<&mut Block> = self.cells.get(key, now);
        let bytes = block.map(|block| wire::pack_block(block)).unwrap_or_default();
        command(self.client, &[b"SET", &wire::block_key(key), &bytes]).map(drop)
    }

    fn reset(&mut self, key: Key, now: Time) -> Result<(), String> {
        run(&Batch::Reset(vec![key]), &mut self.cells, now);
        command(self.client, &[b"DEL", &wire::counter_key(key), &wire::block_key(key)]).map(drop)
    }

    fn count(&mut self, reply: &CheckReply) {
        self.seen.passed += usize::from(reply.passed);
        for row in &reply.rows {
            let verdicts = &mut self.seen.verdicts;
            match row.verdict {
                Verdict::Fits => verdicts[0] += 1,
                Verdict::Blocked => verdicts[1] += 1,
                Verdict::TooCostly => verdicts[2] += 1,
                Verdict::OverLimit => verdicts[3] += 1,
            }
            self.seen.charged += usize::from(row.charged > 0);
            self.seen.started += usize::from(row.started);
            self.seen.moved += usize::from(row.at > reply.now);
        }
    }
}
