//! The port of a front end: how a listener hands its connections to a protocol.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::connections::ConnectionGuard;
use super::stream::ConnectionStream;
use super::table::ConnectionLimit;

/// A protocol. It serves the connections of its listeners, and shares keys, settings, limits,
/// metrics and the drain with all other front ends of the server.
pub trait FrontEnd: Send + Sync + 'static {
    /// The protocols that TLS offers by ALPN; none are offered if it is empty.
    const ALPN: &'static [&'static [u8]];
    /// Whether its callers need an API key if there are any. If so, it listens on loopback
    /// addresses alone while there are none.
    const NEEDS_KEYS: bool = true;

    /// Serves a connection until it ends. The future
    /// - enters each `Phase` of the connection, whose timeout then counts;
    /// - returns at once when `Connection::is_closing`;
    /// - returns when `Connection::is_stopping` and no request is left to answer.
    fn serve(
        self: Arc<Self>,
        stream: ConnectionStream,
        connection: Arc<Connection>,
    ) -> impl Future<Output = ()> + Send;

    /// What a connection above a limit gets before it is closed; may be empty.
    fn refusal(&self, limit: ConnectionLimit) -> &'static [u8];
}

/// A front end without its type. Its connections are spawned behind the virtual call, so that
/// their futures need no box.
pub trait AnyFrontEnd: Send + Sync {
    /// Serves an accepted connection in a task of its own, after the TLS handshake if TLS is on.
    fn spawn(self: Arc<Self>, stream: TcpStream, tls: Option<TlsAcceptor>, guard: ConnectionGuard);

    /// As `FrontEnd::refusal`.
    fn refusal_text(&self, limit: ConnectionLimit) -> &'static [u8];
}

impl<F: FrontEnd> AnyFrontEnd for F {
    fn spawn(self: Arc<Self>, stream: TcpStream, tls: Option<TlsAcceptor>, guard: ConnectionGuard) {
        let connection = Arc::clone(guard.connection());
        let Some(acceptor) = tls else {
            let served = self.serve(ConnectionStream::Plain(stream), connection);
            tokio::spawn(async move {
                served.await;
                drop(guard);
            });
            return;
        };
        tokio::spawn(async move {
            match connection.unless_stopped(acceptor.accept(stream)).await {
                Some(Ok(stream)) => {
                    self.serve(ConnectionStream::Tls(Box::new(stream)), connection).await;
                }
                Some(Err(_)) => guard.metrics().note_tls_failure(),
                None => {}
            }
            drop(guard);
        });
    }

    fn refusal_text(&self, limit: ConnectionLimit) -> &'static [u8] {
        self.refusal(limit)
    }
}
