//! Serves one connection of a client.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use catraca::http_request::ClientCertificate;
use hyper::service::service_fn;
use tracing::warn;

use super::h2_connection;
use super::handler;
use super::pending_settle::{OpenSettles, SettleContext};
use super::proxied_connection::{ProxiedConnection, Proxy};
use crate::client_certificate::parse_certificate;
use crate::http_wire::framing::{AmbiguousLengths, FramingWatch};
use crate::http_wire::quiet_waker::quiet_waker;
use crate::http_wire::server_connection::{StoppableConnection, TrackedStream, http1_builder};
use crate::listener::{Connection, ConnectionStream};

/// Serves the requests of a connection until it ends, and waits until they are settled.
pub async fn serve(stream: ConnectionStream, connection: Arc<Connection>, proxy: Arc<Proxy>) {
    let ambiguous_lengths = AmbiguousLengths::default();
    let framing = FramingWatch::new(ambiguous_lengths.clone());
    let open = Arc::new(OpenSettles::default());
    let server = Arc::clone(&proxy.context);
    let scheme = match &stream {
        ConnectionStream::Plain(_) => "http",
        ConnectionStream::Tls(_) => "https",
    };
    let settle =
        SettleContext { server, connection: Arc::clone(&connection), open: Arc::clone(&open) };
    let is_h2 = stream.alpn() == Some(b"h2");
    let certificate = stream.client_certificate().and_then(|der| read_certificate(&proxy, der));
    let mut proxied = ProxiedConnection::new(proxy, settle, scheme, ambiguous_lengths, is_h2);
    proxied.certificate = certificate;
    let proxied = Arc::new(proxied);
    if is_h2 {
        h2_connection::serve(stream, &proxied).await;
    } else {
        serve_h1(stream, &proxied, framing).await;
    }
    // Requests whose rules read the response run on without their client; they end with the server.
    open.wait().await;
}

/// The certificate of a client; `None`, with a log line, if it was verified but cannot be read.
fn read_certificate(proxy: &Proxy, der: &[u8]) -> Option<ClientCertificate> {
    let certificate = parse_certificate(der);
    let server = &proxy.context;
    if certificate.is_none() && server.observer.logs.try_reserve_line(server.app.now()) {
        warn!("the certificate of a client cannot be read: routes find none of its values");
    }
    certificate
}

async fn serve_h1(
    stream: ConnectionStream,
    proxied: &Arc<ProxiedConnection>,
    framing: FramingWatch,
) {
    let connection = Arc::clone(proxied.connection());
    let shared = Arc::clone(proxied);
    let service = service_fn(move |request| {
        let response = handler::respond(request, Arc::clone(&shared));
        async move { Ok::<_, Infallible>(response.await) }
    });
    let stream = TrackedStream::watching(stream, Arc::clone(&connection), framing);
    // Without `half_close`: a client that has closed is gone, and its request is ended.
    let http = http1_builder().serve_connection(stream, service);
    poll_with_quiet_waker(StoppableConnection::new(http, Arc::clone(&connection))).await;
    if let Some(tunnel) = proxied.close_tunnel_slot() {
        connection.unless_closed(tunnel.run()).await;
    }
}

async fn poll_with_quiet_waker(served: impl Future<Output = ()>) {
    let mut served = pin!(served);
    // A task keeps its waker for life.
    let mut waker = None;
    poll_fn(|cx| {
        let waker = waker.get_or_insert_with(|| quiet_waker(cx.waker()));
        served.as_mut().poll(&mut Context::from_waker(waker))
    })
    .await;
}
