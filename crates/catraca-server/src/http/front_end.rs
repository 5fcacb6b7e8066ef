//! HTTP as a front end: every connection of its listeners is served with one context.

use std::sync::Arc;

use super::connection::{self, HttpConnection, OpenApiSource};
use super::dispatch::dispatch;
use super::openapi;
use crate::context::ServerContext;
use crate::http_wire::overload;
use crate::listener::{Connection, ConnectionLimit, ConnectionStream, FrontEnd};

/// The HTTP API.
pub struct HttpFrontEnd {
    context: Arc<ServerContext>,
}

impl HttpFrontEnd {
    /// Serves the calls of this context.
    pub fn new(context: Arc<ServerContext>) -> Self {
        Self { context }
    }
}

impl FrontEnd for HttpFrontEnd {
    const ALPN: &'static [&'static [u8]] = &[b"http/1.1"];

    fn serve(
        self: Arc<Self>,
        stream: ConnectionStream,
        connection: Arc<Connection>,
    ) -> impl Future<Output = ()> + Send {
        let context = Arc::clone(&self.context);
        let openapi = OpenApiSource { document: openapi::document, text: openapi::document_text };
        let http = HttpConnection { connection, context, openapi };
        connection::serve(stream, http, dispatch)
    }

    fn refusal(&self, limit: ConnectionLimit) -> &'static [u8] {
        overload::response(limit)
    }
}
