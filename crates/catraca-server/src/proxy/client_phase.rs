//! What the client of a request is waited for.
//!
//! On HTTP/1.1 a connection has one request, whose phases are those of the connection. On HTTP/2 it
//! has several, so that the connection is only idle or not, and each stream has phases of its own.

use std::sync::Arc;

use parking_lot::Mutex;

use super::stream_phase::StreamPhase;
use crate::listener::{Connection, Phase};

/// The number of open requests of a connection that can have several. It is locked while the phase
/// of the connection changes: the end of the last request must not make a connection idle on which
/// another request has begun.
#[derive(Debug, Default)]
pub struct OpenRequests(Mutex<usize>);

/// The phases of one request. Dropped when its response has ended.
pub struct ClientPhase {
    connection: Arc<Connection>,
    /// Present on a connection that can have several requests.
    multiplexed: Option<MultiplexedRequest>,
}

struct MultiplexedRequest {
    open: Arc<OpenRequests>,
    stream: Option<Arc<StreamPhase>>,
}

impl ClientPhase {
    /// Begins a request. On HTTP/2 this must be called by the task of its stream.
    pub fn new(connection: &Arc<Connection>, open: Option<&Arc<OpenRequests>>) -> Self {
        let connection = Arc::clone(connection);
        let Some(open) = open.map(Arc::clone) else {
            connection.enter(Phase::Upstream);
            return Self { connection, multiplexed: None };
        };
        let mut count = open.0.lock();
        *count += 1;
        connection.enter(Phase::Upstream);
        drop(count);
        let multiplexed = Some(MultiplexedRequest { open, stream: StreamPhase::of_task() });
        Self { connection, multiplexed }
    }

    /// Starts another phase of the request.
    pub fn enter(&self, phase: Phase) {
        match &self.multiplexed {
            None => self.connection.enter(phase),
            Some(MultiplexedRequest { stream: Some(stream), .. }) => stream.enter(phase),
            Some(_) => {}
        }
    }
}

impl Drop for ClientPhase {
    fn drop(&mut self) {
        let Some(MultiplexedRequest { open, .. }) = &self.multiplexed else { return };
        let mut count = open.0.lock();
        *count -= 1;
        if *count == 0 {
            self.connection.enter(Phase::Idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::config::ConnectionTimeouts;
    use crate::listener::Connections;

    #[test]
    fn a_connection_is_not_idle_while_a_request_is_open() {
        let second = Duration::from_secs(1);
        let timeouts =
            ConnectionTimeouts { head: second, body: second, answer: second, idle: second };
        let connections = Arc::new(Connections::new(1, timeouts));
        let guard = connections.register(Ipv4Addr::LOCALHOST.into(), None);
        let open = Arc::new(OpenRequests::default());
        let serve = || {
            for _ in 0..200_000 {
                let phase = ClientPhase::new(guard.connection(), Some(&open));
                assert!(guard.connection().is_in(Phase::Upstream));
                drop(phase);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(serve);
            scope.spawn(serve);
        });
        assert!(guard.connection().is_in(Phase::Idle));
    }
}
