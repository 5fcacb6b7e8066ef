//! Open connections by peer address, and which idle one is closed when a new one needs its place.
//!
//! A connection that was chosen moves to `closing`, so that it is not counted any more and not
//! chosen twice. Must not close anything itself.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Connections that may be closing beside those that are open. A chosen connection whose request
/// was already on its way is answered first, so it may stay for a while.
const CLOSING_MAX: usize = 256;
/// One scan of all connections chooses one in so many of the idle ones, for newcomers to come:
/// each newcomer then costs a look at about so many connections, however many there are.
const SCAN_SHARE: usize = 64;
/// A scan that found nothing is not repeated before so many times its own duration.
const SCAN_PAUSE: u32 = 10;

/// The address by which connections are counted; none for all trusted proxies.
pub type Peer = Option<IpAddr>;

/// What is known of a connection here.
pub trait Connection {
    /// The tick since which it waits for a request; none if it is at work.
    fn idle_since(&self) -> Option<u64>;
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `connections_max`.
    Total,
    /// `connections_per_address`.
    PerAddress,
}

/// Both limits, with the names of their settings.
pub const LIMITS: [(Limit, &str); 2] =
    [(Limit::Total, "connections_max"), (Limit::PerAddress, "connections_per_address")];

/// All open connections.
pub struct ConnectionTable<C> {
    peers: HashMap<Peer, PeerConnections<C>>,
    /// How many connections `peers` has.
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

/// Idle connections found by one scan, the one to be closed first at the end.
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
    /// How many connections its address has; nothing for trusted proxies, so that they come last.
    siblings: usize,
}

impl Candidate {
    /// The least is closed first: one of the address with the most connections, and of these the
    /// one that has been idle for longest.
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

impl<C: Connection> ConnectionTable<C> {
    /// Adds a connection; its id.
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

    /// Removes a connection that has ended.
    pub fn remove(&mut self, peer: Peer, id: u64) {
        if self.take(peer, id).is_none() {
            self.closing.remove(&id);
        }
    }

    /// Every connection, closing ones too.
    pub fn all(&self) -> impl Iterator<Item = &Arc<C>> {
        self.peers.values().flat_map(|peer| peer.open.values()).chain(self.closing.values())
    }

    /// Finds room for one more connection of this peer. If a limit is reached, gives the idle
    /// connection to close for it, or the limit if none is idle.
    pub fn make_room(
        &mut self,
        peer: Peer,
        total: usize,
        per_address: usize,
    ) -> Result<Option<(Limit, Arc<C>)>, Limit> {
        let of_peer = self.peers.get(&peer).map_or(0, |connections| connections.open.len());
        let (limit, scope) = if peer.is_some() && of_peer >= per_address {
            (Limit::PerAddress, Some(peer))
        } else if self.open >= total {
            (Limit::Total, None)
        } else {
            return Ok(None);
        };
        match self.close_idle(scope) {
            Some(connection) => Ok(Some((limit, connection))),
            None => Err(limit),
        }
    }

    /// Moves the next idle connection, of one peer or of all, to the closing ones.
    fn close_idle(&mut self, scope: Option<Peer>) -> Option<Arc<C>> {
        if self.closing.len() >= CLOSING_MAX {
            return None;
        }
        let mut queue = self.queue(scope).map(std::mem::take)?;
        let chosen = self.next_idle(&mut queue, scope);
        if let Some(place) = self.queue(scope) {
            *place = queue;
        }
        let (id, connection) = chosen?;
        self.closing.insert(id, Arc::clone(&connection));
        Some(connection)
    }

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
        let begun = Instant::now();
        if queue.paused_until.is_some_and(|until| begun < until) {
            return None;
        }
        queue.candidates = self.scan(scope);
        let chosen = self.next_candidate(queue);
        queue.paused_until = chosen.is_none().then(|| begun + begun.elapsed() * SCAN_PAUSE);
        chosen
    }

    /// The next candidate that has been idle ever since it was scanned.
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

    /// A share of the idle connections, the first to be closed at the end.
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

fn candidates<C: Connection>(
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
