//! Locks over a restart: opened with what was kept, tended, and closed in order.
//!
//! Must not lock anything itself.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use catraca::locks::{Journal, StandingLock};
use catraca::records::{KeptLock, Records};
use catraca::{Locks, Secret, SystemClock};

/// How often what is over is put away.
const ROUND: Duration = Duration::from_millis(250);

/// How long the last word may take to be on disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// Locks that end with the process.
pub fn fleeting() -> Locks {
    let mut bytes = [0; 32];
    // Without randomness nobody could be told apart, and the engine has refused to start already.
    let _ = getrandom::fill(&mut bytes);
    Locks::new(Arc::new(SystemClock::new()), &Secret::from_bytes(bytes))
}

/// Locks that know what was kept.
pub fn open(secret: &Secret, records: &Arc<Records>) -> Result<Locks> {
    let mut standing = Vec::new();
    records.locks(|kept| {
        standing.push(match kept {
            KeptLock::Fence(namespace, fence) => StandingLock::Fence(namespace.into(), fence),
            KeptLock::Lease(namespace, lease) => StandingLock::Lease(namespace.into(), lease),
            KeptLock::Version(namespace, kept) => StandingLock::Version(namespace.into(), kept),
        });
    })?;
    let journal: Arc<dyn Journal> = Arc::clone(records) as _;
    Ok(Locks::open(Arc::new(SystemClock::new()), secret, journal, standing))
}

/// Puts away what is over, for as long as there are locks.
pub async fn tend(locks: Weak<Locks>) {
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        rounds.tick().await;
        let Some(locks) = locks.upgrade() else { return };
        locks.tend();
    }
}

/// Grants nothing any more, and says on disk that the end was in order.
pub fn close(locks: &Locks) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        // A disk that is away must not keep the process: the next start is careful then.
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, locks.close()).await });
    }
}
