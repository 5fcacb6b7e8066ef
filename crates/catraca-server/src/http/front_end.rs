//! HTTP as a front end: every connection of its listeners is served with one context and router.

use std::sync::Arc;

use axum::Router;

use super::connection::{self, HttpConnection, overload};
use super::dispatch::dispatch;
use super::router::router;
use crate::context::ServerContext;
use crate::listener::{Connection, ConnectionLimit, ConnectionStream, FrontEnd};

/// The HTTP API.
pub struct HttpFrontEnd {
    context: Arc<ServerContext>,
    router: Router,
}

impl HttpFrontEnd {
    /// Serves the calls of this context.
    pub fn new(context: Arc<ServerContext>) -> Self {
        let router = router(Arc::clone(&context));
        Self { context, router }
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
        let http = HttpConnection { connection, context, router: self.router.clone() };
        connection::serve(stream, http, dispatch)
    }

    fn refusal(&self, limit: ConnectionLimit) -> &'static [u8] {
        overload::response(limit)
    }
}
