//! All connections: how many there may be, which have waited too long, and the word to stop.
//!
//! Time is counted in ticks of one task, so that a request costs no timer and no clock. Must not
//! know what is asked or answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::connection_table::{Connection, ConnectionTable, Limit, Peer};
use super::settings::Patience;
use super::visit::{Phase, Visit};

/// Ticks in the shortest patience; a wait may last one tick longer than it should.
const TICKS: u32 = 4;
/// Bounds of a tick: the first for the sake of the processor, the second for that of precision.
const TICK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// All connections.
pub struct Crowd {
    visits: Mutex<ConnectionTable<Visit>>,
    /// How many there are, so that nobody waits for the lock to learn it.
    present: AtomicUsize,
    max: usize,
    ticks: AtomicU64,
    tick: Duration,
    patience: Patience,
    left: Notify,
}

/// A place among the connections, given back when it is dropped.
pub struct Place {
    visit: Arc<Visit>,
    id: u64,
}

impl Crowd {
    /// Room for so many connections, each with this patience.
    pub fn new(max: usize, patience: Patience) -> Self {
        let shortest = patience.shortest() / TICKS;
        Self {
            visits: Mutex::default(),
            present: AtomicUsize::new(0),
            max,
            ticks: AtomicU64::new(0),
            tick: shortest.clamp(TICK.0, TICK.1),
            patience,
            left: Notify::new(),
        }
    }

    /// The present tick.
    pub fn tick(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// How long a connection is waited for.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// How many there are, and how many there may be.
    pub fn size(&self) -> (usize, usize) {
        (self.present.load(Ordering::Relaxed), self.max)
    }

    /// Finds room for another connection. If a limit is reached, an idle connection is told to
    /// close, and the limit is returned; if none is idle, it is the error.
    pub fn make_room(
        &self,
        peer: Peer,
        per_address: Option<usize>,
    ) -> Result<Option<Limit>, Limit> {
        // One address leaves half of the connections to others unless the catalog says otherwise.
        let per_address = per_address.unwrap_or_else(|| self.max.div_ceil(2));
        let found = self.visits.lock().make_room(peer, self.max, per_address)?;
        Ok(found.map(|(limit, visit)| {
            // A request that is already on its way is answered before the connection closes.
            visit.stop();
            limit
        }))
    }

    /// Takes a visit in.
    pub fn admit(visit: Arc<Visit>) -> Place {
        let crowd = &visit.shared.crowd;
        let id = crowd.visits.lock().insert(visit.counted_as, Arc::clone(&visit));
        crowd.present.fetch_add(1, Ordering::Relaxed);
        Place { visit, id }
    }

    /// Counts time and sends away who has waited too long; never ends.
    pub async fn keep(&self) {
        let mut clock = tokio::time::interval(self.tick);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            clock.tick().await;
            let now = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
            self.visits.lock().all().for_each(|visit| self.look(visit, now));
        }
    }

    /// Tells every connection to leave when it has finished what it is answering.
    pub fn disperse(&self) {
        self.visits.lock().all().for_each(|visit| visit.stop());
    }

    /// Done when all have left.
    pub async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.present.load(Ordering::Acquire) == 0 {
                return;
            }
            left.await;
        }
    }

    fn look(&self, visit: &Visit, now: u64) {
        let (phase, since) = visit.phase();
        let limit = self.patience.of(phase).as_millis().div_ceil(self.tick.as_millis().max(1));
        if u128::from(now.saturating_sub(since)) <= limit {
            return;
        }
        match phase {
            Phase::Body => {
                visit.hurry();
                visit.enter(Phase::Body);
            }
            _ => visit.dismiss(),
        }
    }
}

impl Connection for Visit {
    fn idle_since(&self) -> Option<u64> {
        Visit::idle_since(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let crowd = &self.visit.shared.crowd;
        crowd.visits.lock().remove(self.visit.counted_as, self.id);
        crowd.present.fetch_sub(1, Ordering::Release);
        // Whoever waits for the last one may begin to wait only now.
        crowd.left.notify_one();
    }
}
