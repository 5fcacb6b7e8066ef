//! The state of the shared store as one node sees it: counts and problems.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{SharedDriver, UnavailablePrimary};

/// Statistics of the connection to the shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStats {
    /// Whether the whole store is in use, that is, the circuit breaker of each primary is closed.
    pub up: bool,
    /// Why a primary is not in use; if all are, the last error of the store.
    pub error: Option<String>,
    /// The primaries that are not in use.
    pub unavailable: Vec<UnavailablePrimary>,
    /// Each primary of a store that has several: its address, and whether it is in use.
    pub primaries: Vec<(String, bool)>,
    /// A setting of the store that may lose blocks, and how to fix it.
    pub config_warning: Option<String>,
    /// A setting of the store that should be changed, and how, although nothing is wrong now.
    pub config_notice: Option<String>,
    /// Why the server that this node uses may have been replaced, and the consequence.
    pub doubt: Option<String>,
    /// How many times the circuit breaker of a primary has opened.
    pub breaker_opened: u64,
    /// Why a task of the store in the background fails, and the consequence.
    pub background_error: Option<String>,
    /// Changes of the store that this node could not apply to its local fallback.
    pub failed_mirrors: u64,
    /// Denials from the block cache.
    pub cached_denials: u64,
    /// Blocks in the block cache.
    pub cached_blocks: usize,
    /// Blocks that this node must still write to the store.
    pub unsynced_blocks: usize,
    /// Blocks for which that list had no room. The store gets all blocks of this node instead.
    pub dropped_unsynced_blocks: u64,
    /// How far the store's clock is ahead of this node's, in microseconds.
    pub clock_offset: Option<i64>,
    /// How long ago the last heartbeat ended, if they were started.
    pub heartbeat_age: Option<Duration>,
    /// Nodes that are alive, with this one, when the store last answered.
    pub nodes: usize,
    /// Live nodes with other revisions of the catalog, if that has lasted.
    pub revision_problem: Option<String>,
    /// Notices of blocks and releases in the store.
    pub notices: u64,
    /// Notices about active blocks that were dropped, because there were too many.
    pub dropped_notices: u64,
}

impl SharedDriver {
    /// Statistics of the connection to the shared store.
    pub fn stats(&self) -> SharedStats {
        let all = self.primaries.all();
        let named = all.iter().filter_map(|(id, state)| {
            Some((self.store.primary_name(*id)?, state.breaker.is_closed()))
        });
        let unavailable = self.unavailable_primaries();
        let error = unavailable.first().map(ToString::to_string);
        let last_error = || all.iter().find_map(|(_, state)| state.breaker.last_error());
        let (notices, dropped_notices) = self.notices.counts();
        SharedStats {
            up: unavailable.is_empty(),
            error: error.or_else(last_error),
            unavailable,
            primaries: named.collect(),
            config_warning: self.store.config_warning(),
            config_notice: self.store.config_notice(),
            doubt: self.store.doubt(),
            breaker_opened: self.breaker_opened.load(Ordering::Relaxed),
            background_error: self.background_error(),
            failed_mirrors: self.failed_mirrors.load(Ordering::Relaxed),
            cached_denials: self.cached_denials.load(Ordering::Relaxed),
            cached_blocks: self.block_cache.len(),
            unsynced_blocks: self.unsynced.len(),
            dropped_unsynced_blocks: self.dropped_unsynced.load(Ordering::Relaxed),
            clock_offset: self.primaries.clock_offset(),
            heartbeat_age: self.heartbeats.age(),
            nodes: self.peers.count(),
            revision_problem: self.peers.revision_problem(),
            notices,
            dropped_notices,
        }
    }

    /// Why a task in the background fails, and the consequence.
    pub(super) fn background_error(&self) -> Option<String> {
        let unpublished = self.publish_error.load();
        let unpublished = unpublished.as_deref().map(|why| {
            format!("other nodes do not learn of a change of lists, facts, modes or blocks: {why}")
        });
        let notice_error = || self.notice_error.load().as_deref().cloned();
        let error = unpublished
            .or_else(|| self.heartbeats.problem())
            .or_else(|| self.store.background_error())
            .or_else(notice_error)
            .or_else(|| self.agreement_error.load().as_deref().cloned())
            .or_else(|| self.lost_notices());
        #[cfg(feature = "records")]
        let error =
            error.or_else(|| self.node_scope.get()?.error()).or_else(|| self.reads.problem());
        error
    }
}
