//! Serves one connection of a client.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::service::service_fn;

use super::h2_connection;
use super::handler;
use super::pending_settle::{OpenSettles, SettleContext};
use super::proxied_connection::{ProxiedConnection, Proxy};
use crate::client_certificate::parse_certificate;
use crate::http_wire::framing::{AmbiguousLengths, FramingWatch};
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
    let certificate = stream.client_certificate().and_then(parse_certificate);
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
    StoppableConnection::new(http, Arc::clone(&connection)).await;
    if let Some(tunnel) = proxied.take_tunnel() {
        connection.unless_closed(tunnel.run()).await;
    }
}
