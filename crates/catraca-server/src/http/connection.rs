//! Serves one connection with hyper, and gives its requests what they need.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::http::Request;
use hyper::service::service_fn;
use serde_json::Value;

use super::bodies::problem::HttpResponse;
use crate::context::ServerContext;
use crate::http_wire::server_connection::{StoppableConnection, TrackedStream, http1_builder};
use crate::listener::{Connection, ConnectionStream};

/// An HTTP connection, with what its requests need. One value per connection, so that a request
/// counts no reference that connections share.
pub struct HttpConnection {
    /// The connection of the listener.
    pub connection: Arc<Connection>,
    /// What handlers work with.
    pub context: Arc<ServerContext>,
    /// The OpenAPI document of the server.
    pub openapi: OpenApiSource,
}

/// Where handlers get the OpenAPI document, which is made at the first request.
#[derive(Clone, Copy)]
pub struct OpenApiSource {
    /// The document.
    pub document: fn() -> &'static Value,
    /// The document as text.
    pub text: fn() -> &'static str,
}

/// Serves the requests of a connection with `respond` until it ends.
pub fn serve<F, R>(
    stream: ConnectionStream,
    http: HttpConnection,
    respond: F,
) -> impl Future<Output = ()>
where
    F: Fn(Request<Incoming>, Arc<HttpConnection>) -> R,
    R: Future<Output = HttpResponse>,
{
    let connection = Arc::clone(&http.connection);
    let http = Arc::new(http);
    let service = service_fn(move |request| {
        let response = respond(request, Arc::clone(&http));
        async move { Ok::<_, Infallible>(response.await) }
    });
    let driver = http1_builder()
        // A client may close its sending half after its last request and still read.
        .half_close(true)
        // Responses are small: one copy costs less than two buffers in a system call.
        .writev(false)
        .serve_connection(TrackedStream::new(stream, Arc::clone(&connection)), service);
    StoppableConnection::new(driver, connection)
}
