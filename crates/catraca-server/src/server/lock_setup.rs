//! Opens locks in memory from the records, expires locks periodically, and closes them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use catraca::core::lock::Durability;
use catraca::locks::{Journal, MemoryLocks, RestoredLock};
use catraca::records::{RecordedLock, Records};
use catraca::{Locks, Secret, Span, SystemClock};
use tracing::{info, warn};

use crate::observe::Observer;
use crate::observe::background_tasks::BackgroundTask;

/// How long writing the leases may take when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

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
    let clock = Arc::new(SystemClock::new());
    let store = MemoryLocks::open(clock, journal, durability, restored);
    let locks = Locks::new(Arc::new(store), secret);
    if let Some(wait) = locks.startup_wait() {
        let seconds = Span::from(wait).ceil_secs();
        warn!(seconds, "no locks granted yet: leases of the previous process may still be valid");
    }
    Ok(locks)
}

/// Expires leases periodically, until the locks are dropped; reports errors of the background work
/// of locks, and logs a limitation of their store when it begins and when it ends.
pub async fn expire_periodically(locks: Weak<Locks>, observer: Arc<Observer>) {
    let mut limitation = None;
    loop {
        let interval = {
            let Some(locks) = locks.upgrade() else { return };
            locks.expire().await;
            observer.background.note(BackgroundTask::Locks, locks.background_error());
            log_limitation(&mut limitation, locks.limitation());
            locks.expiry_interval()
        };
        tokio::time::sleep(interval).await;
    }
}

fn log_limitation(logged: &mut Option<String>, now: Option<String>) {
    match &now {
        Some(why) if *logged != now => info!(why, "callers that wait for a lock poll"),
        None if logged.is_some() => info!("callers that wait for a lock are woken at once again"),
        _ => {}
    }
    *logged = now;
}

/// Stops granting; leases in memory and the clean shutdown are recorded.
pub fn close(locks: &Locks) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // A disk that does not respond must not delay the exit.
    let closed = runtime.map(|runtime| {
        runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, locks.close()).await })
    });
    let why = match closed {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(_)) => format!("not finished within {CLOSE_TIMEOUT:?}"),
        Err(error) => error.to_string(),
    };
    warn!(why, "the active leases are not written: the next start waits until they have expired");
}
