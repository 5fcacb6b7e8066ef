//! Opens locks in memory, from the records or in a shared store, expires them periodically, and
//! closes them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use catraca::core::lock::Durability;
use catraca::locks::{Journal, RestoredLock};
use catraca::records::{RecordedLock, Records};
use catraca::{Locks, Secret, SystemClock};
use tracing::warn;

use crate::lock_service::LockService;

/// How often expired leases are removed: in memory, and in a shared store, where each round is a
/// round trip.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(250);
const SHARED_EXPIRY_INTERVAL: Duration = Duration::from_secs(2);

/// How long writing the leases may take when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Locks in memory only.
pub fn volatile() -> Locks {
    let mut bytes = [0; 32];
    // Cannot fail here: the engine was built before, and it needs random bytes too.
    let _ = getrandom::fill(&mut bytes);
    Locks::new(Arc::new(SystemClock::new()), &Secret::from_bytes(bytes))
}

/// Locks in memory with the leases of the records, which new grants are written to.
pub fn open(secret: &Secret, records: &Arc<Records>, durability: Durability) -> Result<Locks> {
    let mut restored = Vec::new();
    records.locks(|recorded| {
        restored.push(match recorded {
            RecordedLock::Fence(namespace, fence) => RestoredLock::Fence(namespace.into(), fence),
            RecordedLock::Lease(namespace, lease) => RestoredLock::Lease(namespace.into(), lease),
            RecordedLock::Version(namespace, version) => {
                RestoredLock::Version(namespace.into(), version)
            }
        });
    })?;
    let journal: Arc<dyn Journal> = Arc::clone(records) as _;
    let storage = (journal, durability);
    let locks = Locks::open(Arc::new(SystemClock::new()), secret, storage, restored);
    if let Some(wait) = locks.startup_wait() {
        let seconds = wait.ceil_secs();
        warn!(seconds, "no locks granted yet: leases of the previous process may still be valid");
    }
    Ok(locks)
}

/// Expires leases and serves waiting callers periodically, until the locks are dropped.
pub async fn expire_periodically(locks: Weak<LockService>) {
    loop {
        let interval = {
            let Some(locks) = locks.upgrade() else { return };
            locks.expire().await;
            if matches!(&*locks, LockService::Local(_)) {
                EXPIRY_INTERVAL
            } else {
                SHARED_EXPIRY_INTERVAL
            }
        };
        tokio::time::sleep(interval).await;
    }
}

/// Stops granting, and records the active leases and the clean shutdown.
pub fn close(locks: &LockService) {
    let locks = match locks {
        LockService::Local(locks) => locks,
        LockService::Shared(locks) => return locks.close(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        // A disk that does not respond must not delay the exit. Without the record of a clean
        // shutdown, the next start waits for old leases to expire.
        let _ =
            runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, locks.close()).await });
    }
}
