//! What the client of a request is waited for.
//!
//! On HTTP/1.1 a connection has one request, whose phases are those of the connection. On HTTP/2 it
//! has several, so that the connection is only idle or not, and the requests have timeouts of their
//! own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::listener::{Connection, Phase};

/// The phases of one request. Dropped when its response has ended.
pub struct ClientPhase {
    connection: Arc<Connection>,
    /// The number of open requests of a connection that has several.
    open: Option<Arc<AtomicUsize>>,
}

impl ClientPhase {
    /// Begins a request.
    pub fn new(connection: &Arc<Connection>, open: Option<&Arc<AtomicUsize>>) -> Self {
        connection.enter(Phase::Upstream);
        let open = open.map(Arc::clone);
        if let Some(open) = &open {
            open.fetch_add(1, Ordering::AcqRel);
        }
        Self { connection: Arc::clone(connection), open }
    }

    /// Starts another phase of the request.
    pub fn enter(&self, phase: Phase) {
        if self.open.is_none() {
            self.connection.enter(phase);
        }
    }
}

impl Drop for ClientPhase {
    fn drop(&mut self) {
        let is_last = |open: &Arc<AtomicUsize>| open.fetch_sub(1, Ordering::AcqRel) == 1;
        if self.open.as_ref().is_some_and(is_last) {
            self.connection.enter(Phase::Idle);
        }
    }
}
