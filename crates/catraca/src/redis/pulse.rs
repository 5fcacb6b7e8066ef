//! What nodes tell each other through the store besides batches: a count of changes, whose the
//! records are, and which life of the store this is.
//!
//! Each is one trip; in a cluster every primary is asked for its life, all at once. A pulse also
//! sees whether somebody has let a server evict blocks since it was greeted. Must not touch cells.

use std::sync::Arc;

use catraca_core::time::Time;
use redis::{Pipeline, RedisResult, pipe};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::greet::fits;
use super::link::{Line, Link};
use super::store::{Lines, RedisStore};
use crate::store::{Pulse, StoreError};

/// The group under which all nodes meet.
const HOME: u16 = 0;

/// The server's `TIME`, the changes, the life, what it tells of its memory.
type Felt = ((i64, i64), Option<u64>, String, String);

/// A server's life with its own, and what puts blocks in danger there.
type Life = (String, Option<String>);

impl RedisStore {
    pub(super) async fn feel_pulse(&self) -> Result<Pulse, StoreError> {
        let ask = question(&self.prefix(HOME))?;
        let felt = self.trip(HOME, |line, _| feel(line, ask.clone()));
        let (((seconds, micros), changes, ..), (life, danger)) = felt.await?;
        let micros = seconds.saturating_mul(1_000_000).saturating_add(micros);
        let (others, dangers): (Vec<_>, Vec<_>) = self.other_lives().await?.into_iter().unzip();
        let danger = danger.or_else(|| dangers.into_iter().flatten().next());
        self.danger.store(danger.map(Arc::new));
        let life = format!("{life} {}", others.join(" "));
        let print = blake3::hash(life.as_bytes());
        Ok(Pulse {
            changes: changes.unwrap_or(0),
            now: Time::from_micros(micros),
            life: print.as_bytes()[..8].iter().fold(0, |life, byte| life << 8 | u64::from(*byte)),
        })
    }

    /// The lives of all primaries of a cluster, in the order of their keys: what one of them has
    /// lost is lost.
    async fn other_lives(&self) -> Result<Vec<Life>, StoreError> {
        let Lines::Cluster(cluster) = &self.lines else { return Ok(Vec::new()) };
        let (mut asked, until) = (JoinSet::new(), Instant::now() + self.deadline);
        for (link, home) in cluster.map().homes() {
            asked.spawn(life(link, question(&self.prefix(home))?, until));
        }
        let mut lives = asked.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        lives.sort();
        Ok(lives)
    }

    pub(super) async fn count_change(&self) -> Result<(), StoreError> {
        let mut count = pipe();
        count.cmd("INCR").arg(name(&self.prefix(HOME), "changes")).ignore();
        self.trip(HOME, |line, _| ask::<()>(line, count.clone())).await
    }

    pub(super) async fn claim_for(&self, records: &str) -> Result<String, StoreError> {
        let mut claim = pipe();
        let name = name(&self.prefix(HOME), "records");
        claim.cmd("SET").arg(&name).arg(records).arg("NX").ignore().cmd("GET").arg(&name);
        let (whose,) = self.trip(HOME, |line, _| ask::<(String,)>(line, claim.clone())).await?;
        Ok(whose)
    }
}

/// A name of our own, which no cell can have: those are longer.
fn name(prefix: &[u8], name: &str) -> Vec<u8> {
    [prefix, name.as_bytes()].concat()
}

/// Whoever finds no life begins a new one: the store was emptied.
fn question(prefix: &[u8]) -> Result<Pipeline, StoreError> {
    let number = getrandom::u64().map_err(|error| StoreError::unavailable(error.to_string()))?;
    let (mut ask, life) = (pipe(), name(prefix, "life"));
    ask.cmd("TIME").cmd("GET").arg(name(prefix, "changes"));
    ask.cmd("SET").arg(&life).arg(format!("{number:016x}")).arg("NX").ignore();
    ask.cmd("GET").arg(&life).cmd("INFO").arg("memory");
    Ok(ask)
}

async fn ask<T: redis::FromRedisValue>(mut line: Line, pipe: Pipeline) -> RedisResult<T> {
    pipe.query_async(&mut line.connection).await
}

/// What was felt, and the life with the server's own.
async fn feel(line: Line, pipe: Pipeline) -> RedisResult<(Felt, Life)> {
    let about = line.about.clone();
    let felt: Felt = ask(line, pipe).await?;
    let life = format!("{} {}", about.run_id, felt.2);
    let danger = fits(&about.server, &felt.3).err().map(|error| error.to_string());
    Ok((felt, (life, danger)))
}

async fn life(link: Arc<Link>, ask: Pipeline, until: Instant) -> Result<Life, StoreError> {
    let (_, life) = link.trip(until, |line| feel(line, ask)).await?;
    Ok(life)
}
