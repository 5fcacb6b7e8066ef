//! What nodes tell each other through the store besides batches: a count of changes, whose the
//! records are, and which life of the store this is.
//!
//! Each is one trip. Must not touch cells.

use catraca_core::time::Time;
use redis::{Pipeline, RedisResult, pipe};

use super::link::Line;
use super::store::RedisStore;
use crate::store::{Pulse, StoreError};

/// The server's `TIME`, the changes and the life.
type Felt = ((i64, i64), Option<u64>, String);

impl RedisStore {
    pub(super) async fn feel_pulse(&self) -> Result<Pulse, StoreError> {
        let mut ask = pipe();
        let (changes, life) = (self.name("changes"), self.name("life"));
        ask.cmd("TIME").cmd("GET").arg(changes);
        // Whoever finds no life begins a new one: the store was emptied.
        ask.cmd("SET").arg(&life).arg(random()?).arg("NX").ignore();
        ask.cmd("GET").arg(&life);
        let ((seconds, micros), changes, life, run_id) = self.trip(|line| feel(line, ask)).await?;
        let micros = seconds.saturating_mul(1_000_000).saturating_add(micros);
        let print = blake3::hash(format!("{run_id} {life}").as_bytes());
        let (life, _) = print.as_bytes().split_at(8);
        Ok(Pulse {
            changes: changes.unwrap_or(0),
            now: Time::from_micros(micros),
            life: life.iter().fold(0, |life, byte| life << 8 | u64::from(*byte)),
        })
    }

    pub(super) async fn count_change(&self) -> Result<(), StoreError> {
        let mut count = pipe();
        count.cmd("INCR").arg(self.name("changes")).ignore();
        self.trip(|line| ask::<()>(line, count)).await
    }

    pub(super) async fn claim_for(&self, records: &str) -> Result<String, StoreError> {
        let (mut claim, name) = (pipe(), self.name("records"));
        claim.cmd("SET").arg(&name).arg(records).arg("NX").ignore().cmd("GET").arg(&name);
        let (whose,) = self.trip(|line| ask::<(String,)>(line, claim)).await?;
        Ok(whose)
    }

    /// A name of our own, which no cell can have: those are longer.
    fn name(&self, name: &str) -> Vec<u8> {
        [&self.prefix, name.as_bytes()].concat()
    }
}

async fn ask<T: redis::FromRedisValue>(mut line: Line, pipe: Pipeline) -> RedisResult<T> {
    pipe.query_async(&mut line.connection).await
}

async fn feel(
    line: Line,
    pipe: Pipeline,
) -> RedisResult<((i64, i64), Option<u64>, String, String)> {
    let run_id = line.about.run_id.clone();
    let (time, changes, life): Felt = ask(line, pipe).await?;
    Ok((time, changes, life, run_id))
}

fn random() -> Result<String, StoreError> {
    let number = getrandom::u64().map_err(|error| StoreError::unavailable(error.to_string()))?;
    Ok(format!("{number:016x}"))
}
