//! The timeout of a client that does not read its response, for one stream of HTTP/2.
//!
//! The timeouts of `Connections` see a connection, and a client could read one stream of it and
//! leave others unread for ever, each with a connection to an upstream. hyper runs every stream as
//! a task; the task ends here when the client has not taken the next part within `answer_timeout`,
//! and then the stream is reset.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::idle_timer::IdleTimer;
use crate::context::ServerContext;
use crate::listener::{Connection, Phase};

tokio::task_local! {
    static STREAM: Arc<StreamPhase>;
}

/// Since when the client of a stream has not taken the next part of its response.
#[derive(Debug, Default)]
pub struct StreamPhase {
    unread_since: Mutex<Option<Instant>>,
}

impl StreamPhase {
    /// That of the stream whose task this is.
    pub fn of_task() -> Option<Arc<Self>> {
        STREAM.try_with(Arc::clone).ok()
    }

    /// Starts another phase of the request.
    pub fn enter(&self, phase: Phase) {
        let is_unread = matches!(phase, Phase::Stream | Phase::Answer);
        *self.unread_since.lock() = is_unread.then(Instant::now);
    }
}

/// Runs the streams of a connection.
#[derive(Clone)]
pub struct StreamExecutor {
    /// The connection.
    pub connection: Arc<Connection>,
    /// Counts timeouts.
    pub server: Arc<ServerContext>,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let phase = Arc::new(StreamPhase::default());
        let mut timer = IdleTimer::new(self.connection.timeouts().answer);
        let server = Arc::clone(&self.server);
        tokio::spawn(async move {
            let mut stream = pin!(STREAM.scope(Arc::clone(&phase), stream));
            let is_unread = poll_fn(|cx| {
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                let since = *phase.unread_since.lock();
                match since {
                    Some(since) => timer.poll_expired_since(since, cx).map(|()| true),
                    None => Poll::Pending,
                }
            });
            if is_unread.await {
                server.connections.metrics.note_timeout(Phase::Stream);
            }
        });
    }
}
