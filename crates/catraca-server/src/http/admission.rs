//! Whether an accepted connection is served: limits, idle connections that give way, refusals.
//!
//! Must not wait: a connection is served, or it is refused at once.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tracing::warn;

use super::connection_table::{LIMITS, Limit, Peer};
use super::listen::Shared;
use super::shed;

/// The least time between two log lines of one kind.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Admits and refuses connections.
pub struct Admission {
    farewells: Arc<Semaphore>,
    refusals: [LogPause; LIMITS.len()],
    closings: [LogPause; LIMITS.len()],
}

impl Admission {
    /// Admission that has logged nothing yet.
    pub fn new() -> Self {
        Self {
            farewells: Arc::new(Semaphore::new(shed::FAREWELLS_MAX)),
            refusals: Default::default(),
            closings: Default::default(),
        }
    }

    /// Finds room for a connection, and says by which address it is counted. When a limit is
    /// reached, an idle connection is told to close; if none is idle, the limit refuses this one.
    pub fn admit(&mut self, shared: &Shared, peer: IpAddr) -> Result<Peer, Limit> {
        let live = shared.front.live.load();
        let counted_as = live.settings.counted_as(peer);
        let per_address = live.settings.connections_per_address;
        if let Some(limit) = shared.crowd.make_room(counted_as, per_address)? {
            shared.tally.note_idle_closed(limit);
            if self.closings[limit as usize].is_over() {
                let setting = LIMITS[limit as usize].1;
                let [closed_full, closed_per_address] = shared.tally.idle_closed();
                warn!(
                    closed_full,
                    closed_per_address,
                    "{setting} reached: idle connections are closed to make room for new ones"
                );
            }
        }
        Ok(counted_as)
    }

    /// Answers 503 and closes.
    pub fn refuse(&mut self, shared: &Shared, stream: TcpStream, limit: Limit) {
        shared.tally.note_shed(limit);
        if self.refusals[limit as usize].is_over() {
            log_refusal(shared, limit);
        }
        // A client that expects TLS understands no plain text: it finds its connection closed.
        if shared.front.tls.is_none() {
            shed::send_away(stream, limit, &self.farewells);
        }
    }
}

fn log_refusal(shared: &Shared, limit: Limit) {
    let [refused_full, refused_per_address] = shared.tally.shed();
    match limit {
        Limit::Total => warn!(
            refused_full,
            refused_per_address,
            "connection refused: connections_max reached and no connection is idle; raise it if \
             the machine has room"
        ),
        Limit::PerAddress => warn!(
            refused_full,
            refused_per_address,
            "connection refused: its address has connections_per_address connections and none of \
             them is idle; raise it, or name a proxy in [network] trusted_proxies"
        ),
    }
}

/// Keeps a log line from being written too often.
#[derive(Default)]
struct LogPause {
    until: Option<Instant>,
}

impl LogPause {
    /// Whether a line may be written now; if so, the next pause begins.
    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        let over = self.until.is_none_or(|until| now >= until);
        if over {
            self.until = Some(now + LOG_PAUSE);
        }
        over
    }
}
