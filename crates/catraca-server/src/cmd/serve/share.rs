//! Connecting to a store that nodes share, and telling what becomes of it.
//!
//! Must not print a password.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use catraca::engine::{ResumeError, Resumed};
use catraca::records::{Records, redacted};
use catraca::shared::{Beat, tend as beats};
use tokio::runtime::Runtime;
use tracing::{info, warn};

use super::sharing::Sharing;
use crate::shared::{Anywhere, SharedEngine};

/// How often a store is asked at a start, and how long after one another.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Connects, or says why it cannot be.
pub async fn connect(sharing: &Sharing) -> Result<Anywhere> {
    Anywhere::connect(sharing).await
}

/// Puts the records in force. A store that was started with this machine may be slow to answer at
/// first, so it is asked again for a while.
pub async fn resume(shared: &SharedEngine, records: &Arc<Records>) -> Result<Resumed, ResumeError> {
    for _ in 1..TRIES {
        match shared.resume(Arc::clone(records)).await {
            Err(ResumeError::Store(error)) => {
                warn!(%error, "the store does not answer yet; asking again");
                tokio::time::sleep(PAUSE).await;
            }
            over => return over,
        }
    }
    shared.resume(Arc::clone(records)).await
}

/// One line about the store.
pub fn found(sharing: &Sharing) -> String {
    let nodes = match sharing.nodes {
        1 => "one node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    format!("Counters and blocks are in {}, for {nodes}.", redacted(&sharing.url))
}

/// Keeps in touch with the store for as long as the engine lives; the log says what changes.
pub fn tend(shared: &Arc<SharedEngine>, runtime: &Runtime) {
    let told = Told::default();
    let _entered = runtime.enter();
    // It ends with the engine.
    drop(beats(shared, move |beat| told.tell(beat)));
}

/// What was said last, so that it is said once.
#[derive(Default)]
struct Told {
    away: AtomicBool,
    skewed: AtomicBool,
    troubled: AtomicBool,
    in_danger: AtomicBool,
}

impl Told {
    fn tell(&self, beat: &Beat) {
        let why = beat.trouble.as_deref().unwrap_or("it does not answer");
        if !self.away.swap(!beat.up, Ordering::Relaxed) && !beat.up {
            warn!(why, "the store is away: each policy does what its `on_failure` says");
        }
        if beat.back {
            info!("the store is back");
        }
        if beat.reborn {
            warn!("the store may have lost counters; it was told of every block again");
        }
        let troubled = beat.up && beat.trouble.is_some();
        if !self.troubled.swap(troubled, Ordering::Relaxed) && troubled {
            warn!(why, "the store is there and cannot do its work, or the records cannot");
        }
        let danger = beat.danger.as_deref();
        if !self.in_danger.swap(danger.is_some(), Ordering::Relaxed)
            && let Some(why) = danger
        {
            warn!(why, "the store may lose blocks by its own settings; it is asked all the same");
        }
        if !self.skewed.swap(beat.skewed, Ordering::Relaxed) && beat.skewed {
            warn!("the store's clock is two seconds or more from this node's: look at both");
        }
    }
}
