//! Open connections by peer address, and the choice of the idle connection that is closed when a
//! limit is reached.
//!
//! A chosen connection moves to `closing`, so that it neither counts against the limits nor is
//! chosen twice. The table only chooses; the caller closes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Connections that may be closing in addition to the open ones. A chosen connection whose request
/// has already arrived is answered first, so it may stay for a while.
const CLOSING_MAX: usize = 256;
/// One scan of all connections queues one in this many of the idle ones for the next newcomers. The
/// cost of a scan is thus spread: per newcomer about this many connections are looked at, however
/// many are open.
const SCAN_SHARE: usize = 64;
/// A scan that found nothing is not repeated before this many times its own duration, so that scans
/// take at most a tenth of the accept loop's time.
const SCAN_PAUSE: u32 = 10;

/// The address that a connection counts against; none for all trusted proxies together.
pub type Peer = Option<IpAddr>;

/// What the table needs to know about a connection.
pub trait Evictable {
    /// The tick since which it has waited for a request; none while a request is in progress.
    fn idle_since(&self) -> Option<u64>;
}

/// A limit on the number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// `connections_max`.
    Total,
    /// `connections_per_address`.
    PerAddress,
}

/// Both limits with the names of their settings, in the order of the variants: metrics are arrays
/// indexed by `limit as usize`.
pub const CONNECTION_LIMITS: [(ConnectionLimit, &str); 2] = [
    (ConnectionLimit::Total, "connections_max"),
    (ConnectionLimit::PerAddress, "connections_per_address"),
];

/// All open connections.
pub struct ConnectionTable<C> {
    peers: HashMap<Peer, PeerConnections<C>>,
    /// The sum over `peers`.
    open: usize,
    closing: HashMap<u64, Arc<C>>,
    idle: IdleQueue,
    next_id: u64,
}

/// The connections of one peer address.
struct PeerConnections<C> {
    open: HashMap<u64, Arc<C>>,
    idle: IdleQueue,
}

/// Idle connections found by one scan; the last element is closed first.
#[derive(Default)]
struct IdleQueue {
    candidates: Vec<Candidate>,
    paused_until: Option<Instant>,
}

/// A connection that was idle when it was scanned.
struct Candidate {
    peer: Peer,
    id: u64,
    since: u64,
    /// How many connections its address has; 0 for trusted proxies, so that they are closed last.
    siblings: usize,
}

impl Candidate {
    /// The lowest rank is closed first: of the address with the most connections, the one that has
    /// been idle longest. `id` makes the order total.
    fn rank(&self) -> (Reverse<usize>, u64, u64) {
        (Reverse(self.siblings), self.since, self.id)
    }
}

impl<C> Default for ConnectionTable<C> {
    fn default() -> Self {
        Self {
            peers: HashMap::new(),
            open: 0,
            closing: HashMap::new(),
            idle: IdleQueue::default(),
            next_id: 0,
        }
    }
}

impl<C: Evictable> ConnectionTable<C> {
    /// Adds a connection and returns its id.
    pub fn insert(&mut self, peer: Peer, connection: Arc<C>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let of_peer = self.peers.entry(peer).or_insert_with(|| PeerConnections {
            open: HashMap::new(),
            idle: IdleQueue::default(),
        });
        of_peer.open.insert(id, connection);
        self.open += 1;
        id
    }

    /// Removes a connection that has ended, whether it was open or closing.
    pub fn remove(&mut self, peer: Peer, id: u64) {
        if self.take(peer, id).is_none() {
            self.closing.remove(&id);
        }
    }

    /// All connections, including closing ones.
    pub fn all(&self) -> impl Iterator<Item = &Arc<C>> {
        self.peers.values().flat_map(|peer| peer.open.values()).chain(self.closing.values())
    }

    /// Makes room for one more connection of `peer`. If a limit is reached, returns the idle
    /// connection to close, or fails with the limit if none is idle.
    pub fn make_room(
        &mut self,
        peer: Peer,
        total: usize,
        per_address: Option<usize>,
    ) -> Result<Option<(ConnectionLimit, Arc<C>)>, ConnectionLimit> {
        let of_peer = self.peers.get(&peer).map_or(0, |connections| connections.open.len());
        // By default one address may take half of all connections.
        let most = per_address.unwrap_or_else(|| total.div_ceil(2));
        let (limit, scope) = if peer.is_some() && of_peer >= most {
            (ConnectionLimit::PerAddress, Some(peer))
        } else if self.open >= total {
            (ConnectionLimit::Total, None)
        } else if peer.is_some() && per_address.is_none() && of_peer >= self.share(of_peer, total) {
            // Beyond its share, it gets the place of an idle connection of any address.
            (ConnectionLimit::PerAddress, None)
        } else {
            return Ok(None);
        };
        match self.close_idle(scope) {
            Some(connection) => Ok(Some((limit, connection))),
            None => Err(limit),
        }
    }

    /// The default share of an address: half of what the others leave. The second address that
    /// takes all it can gets a quarter, the third an eighth, and so there is a place for the next.
    fn share(&self, of_peer: usize, total: usize) -> usize {
        total.saturating_sub(self.open - of_peer).div_ceil(2)
    }

    /// Moves the next idle connection, of one peer or of all, from open to closing.
    fn close_idle(&mut self, scope: Option<Peer>) -> Option<Arc<C>> {
        if self.closing.len() >= CLOSING_MAX {
            return None;
        }
        // Taken out while the table is searched, because both are parts of `self`.
        let mut queue = self.queue(scope).map(std::mem::take)?;
        let chosen = self.next_idle(&mut queue, scope);
        if let Some(stored) = self.queue(scope) {
            *stored = queue;
        }
        let (id, connection) = chosen?;
        self.closing.insert(id, Arc::clone(&connection));
        Some(connection)
    }

    /// The queue of one peer, or of all.
    fn queue(&mut self, scope: Option<Peer>) -> Option<&mut IdleQueue> {
        match scope {
            None => Some(&mut self.idle),
            Some(peer) => self.peers.get_mut(&peer).map(|connections| &mut connections.idle),
        }
    }

    fn next_idle(&mut self, queue: &mut IdleQueue, scope: Option<Peer>) -> Option<(u64, Arc<C>)> {
        if let Some(chosen) = self.next_candidate(queue) {
            return Some(chosen);
        }
        let started = Instant::now();
        if queue.paused_until.is_some_and(|until| started < until) {
            return None;
        }
        queue.candidates = self.scan(scope);
        let chosen = self.next_candidate(queue);
        queue.paused_until = chosen.is_none().then(|| started + started.elapsed() * SCAN_PAUSE);
        chosen
    }

    /// The next candidate that has been idle ever since the scan; others have served a request
    /// meanwhile or are gone.
    fn next_candidate(&mut self, queue: &mut IdleQueue) -> Option<(u64, Arc<C>)> {
        while let Some(candidate) = queue.candidates.pop() {
            let Candidate { peer, id, since, .. } = candidate;
            let connection = self.peers.get(&peer).and_then(|of_peer| of_peer.open.get(&id));
            if connection.and_then(|connection| connection.idle_since()) == Some(since) {
                return self.take(peer, id).map(|connection| (id, connection));
            }
        }
        None
    }

    /// A share of the idle connections, those to close first at the end.
    fn scan(&self, scope: Option<Peer>) -> Vec<Candidate> {
        let mut found = match scope {
            Some(peer) => self
                .peers
                .get(&peer)
                .map_or_else(Vec::new, |of_peer| candidates(peer, of_peer).collect()),
            None => self.peers.iter().flat_map(|(peer, all)| candidates(*peer, all)).collect(),
        };
        let share = found.len() / SCAN_SHARE + 1;
        if share < found.len() {
            found.select_nth_unstable_by_key(share, Candidate::rank);
            found.truncate(share);
        }
        found.sort_unstable_by_key(|candidate| Reverse(candidate.rank()));
        found
    }

    /// Removes an open connection.
    fn take(&mut self, peer: Peer, id: u64) -> Option<Arc<C>> {
        let of_peer = self.peers.get_mut(&peer)?;
        let connection = of_peer.open.remove(&id)?;
        if of_peer.open.is_empty() {
            self.peers.remove(&peer);
        }
        self.open -= 1;
        Some(connection)
    }
}

fn candidates<C: Evictable>(
    peer: Peer,
    of_peer: &PeerConnections<C>,
) -> impl Iterator<Item = Candidate> {
    let siblings = if peer.is_some() { of_peer.open.len() } else { 0 };
    of_peer.open.iter().filter_map(move |(id, connection)| {
        let since = connection.idle_since()?;
        Some(Candidate { peer, id: *id, since, siblings })
    })
}

#[cfg(test)]
mod tests;
