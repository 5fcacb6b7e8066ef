//! Locks as they are opened: with what was kept over a restart, or in a store that nodes share;
//! tended while the server runs, and closed in order.
//!
//! Must not lock anything itself.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use catraca::core::lock::Durability;
use catraca::locks::{Journal, LockStore, StandingLock};
use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::records::{KeptLock, Records};
use catraca::redis::{RedisLocks, RedisOptions, is_redis};
use catraca::{Catalog, Locks, Secret, SharedLocks, SystemClock};
use tracing::warn;

use super::sharing::Sharing;
use crate::locks::Keeper;

/// How often what is over is put away: in this process, and where each round is a trip.
const ROUND: Duration = Duration::from_millis(250);
const SHARED_ROUND: Duration = Duration::from_secs(2);

/// How long leases and the last word may take to be on disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// Locks that end with the process.
pub fn fleeting() -> Locks {
    let mut bytes = [0; 32];
    // Without randomness nobody could be told apart, and the engine has refused to start already.
    let _ = getrandom::fill(&mut bytes);
    Locks::new(Arc::new(SystemClock::new()), &Secret::from_bytes(bytes))
}

/// Locks that know what was kept, and keep grants like this from now on.
pub fn open(secret: &Secret, records: &Arc<Records>, durability: Durability) -> Result<Locks> {
    let mut standing = Vec::new();
    records.locks(|kept| {
        standing.push(match kept {
            KeptLock::Fence(namespace, fence) => StandingLock::Fence(namespace.into(), fence),
            KeptLock::Lease(namespace, lease) => StandingLock::Lease(namespace.into(), lease),
            KeptLock::Version(namespace, kept) => StandingLock::Version(namespace.into(), kept),
        });
    })?;
    let journal: Arc<dyn Journal> = Arc::clone(records) as _;
    let kept = (journal, durability);
    let locks = Locks::open(Arc::new(SystemClock::new()), secret, kept, standing);
    if let Some(wait) = locks.starting() {
        let seconds = wait.ceil_secs();
        warn!(seconds, "locks wait: leases of the process before may be in force; none is granted");
    }
    Ok(locks)
}

/// Locks in the store that nodes share.
pub async fn share(sharing: &Sharing, secret: &Secret, catalog: &Catalog) -> Result<SharedLocks> {
    let store: Arc<dyn LockStore> = match is_redis(&sharing.url) {
        true => Arc::new(redis(sharing, catalog).await?),
        false => Arc::new(postgres(sharing).await?),
    };
    Ok(SharedLocks::new(store, secret))
}

async fn redis(sharing: &Sharing, catalog: &Catalog) -> Result<RedisLocks> {
    let usual = RedisOptions::default();
    let options = RedisOptions {
        deadline: sharing.deadline.unwrap_or(usual.deadline),
        ca_file: sharing.ca_file.clone(),
        ..usual
    };
    Ok(RedisLocks::replicated(&sharing.url, options, catalog.locks.replicas).await?)
}

/// Connections of their own, so that decisions and locks do not wait for each other.
async fn postgres(sharing: &Sharing) -> Result<PostgresStore> {
    let usual = PostgresOptions::default();
    let deadline = sharing.deadline.unwrap_or(usual.deadline);
    // Cells are swept by the store that decides.
    let options = PostgresOptions { deadline, sweep_every: None, ..usual };
    Ok(PostgresStore::open(&sharing.url, options).await?)
}

/// Puts away what is over, for as long as there are locks.
pub async fn tend(locks: Weak<Keeper>) {
    loop {
        let round = {
            let Some(locks) = locks.upgrade() else { return };
            locks.tend().await;
            if matches!(&*locks, Keeper::Here(_)) { ROUND } else { SHARED_ROUND }
        };
        tokio::time::sleep(round).await;
    }
}

/// Grants nothing any more, and puts on disk what is in force and that the end was in order.
pub fn close(locks: &Keeper) {
    let locks = match locks {
        Keeper::Here(locks) => locks,
        Keeper::Shared(locks) => return locks.close(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        // A disk that is away must not keep the process: the next start is careful then.
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, locks.close()).await });
    }
}
