//! All listeners of a server: they accept until a stop, and are drained together.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::accept::Listener;
use super::connections::Connections;

/// How long responses in progress may take after a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long connections that are closed after that may take to settle their requests.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The listeners of a server.
pub struct Listeners {
    listeners: Vec<Listener>,
    connections: Arc<Connections>,
    /// How long new connections are still accepted after a stop was requested.
    stop_delay: Duration,
}

impl Listeners {
    /// Joins bound listeners, which share `connections`.
    pub fn new(
        listeners: Vec<Listener>,
        connections: Arc<Connections>,
        stop_delay: Duration,
    ) -> Self {
        Self { listeners, connections, stop_delay }
    }

    /// Serves until `stop` returns, then lets responses in progress finish, unless `stop` returns
    /// again. Calls `on_drain` when the drain begins.
    pub async fn serve(self, mut stop: impl AsyncFnMut(), on_drain: impl FnOnce()) {
        tokio::select! {
            () = self.accept_all() => {}
            () = self.connections.run_timeouts() => {}
            () = stop() => {
                self.connections.begin_drain();
                on_drain();
                self.drain(stop).await;
            }
        }
    }

    /// Accepts connections on all listeners; never returns.
    async fn accept_all(&self) {
        let mut loops: Vec<_> =
            self.listeners.iter().map(|listener| Box::pin(listener.accept())).collect();
        poll_fn(|cx| {
            for accept in &mut loops {
                // Never ready.
                let _ = accept.as_mut().poll(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// Keeps accepting for `stop_delay`, so that load balancers notice the drain before the ports
    /// close.
    async fn drain(self, mut stop: impl AsyncFnMut()) {
        if !self.stop_delay.is_zero() {
            tokio::select! {
                () = self.accept_all() => {}
                () = self.connections.run_timeouts() => {}
                () = tokio::time::sleep(self.stop_delay) => {}
                // The second signal: end without waiting for anything.
                () = stop() => return,
            }
        }
        self.close_ports(stop).await;
    }

    /// Accepts what is already in the system's backlog, closes the ports, and waits for responses
    /// in progress.
    async fn close_ports(self, mut stop: impl AsyncFnMut()) {
        let Self { listeners, connections, .. } = self;
        let sockets: Vec<_> = listeners.into_iter().map(Listener::accept_backlog).collect();
        // Signal first, then close the ports: a client that finds one closed knows that all open
        // connections have the signal to stop.
        connections.stop_all();
        drop(sockets);
        tokio::select! {
            () = connections.wait_until_empty() => {}
            () = connections.run_timeouts() => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
            () = stop() => {}
        }
        connections.close_all();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.wait_until_empty()).await;
    }
}
