//! The reverse proxy as a front end.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::abandoned_requests::AbandonedRequests;
use super::connection;
use super::proxied_connection::Proxy;
use super::settle_watch::SettleWatch;
use super::upstreams::Upstreams;
use crate::context::ServerContext;
use crate::http_wire::overload;
use crate::listener::{Connection, ConnectionLimit, ConnectionStream, FrontEnd};

/// Proxies requests to the upstreams of their routes.
pub struct ProxyFrontEnd {
    proxy: Arc<Proxy>,
}

impl ProxyFrontEnd {
    /// Starts without connections to upstreams; `runtime` closes those that are no longer used.
    pub fn new(context: Arc<ServerContext>, runtime: &Handle) -> Self {
        let ca_file = context.reloadable.load().process.proxy.ca_file.clone();
        let ca_file = ca_file.map(|file| context.reloader.folder().join(file));
        let upstreams = Arc::new(Upstreams::new(ca_file, Arc::downgrade(&context)));
        upstreams.prepare(&context.app.catalog(), &context.reloadable.load().process.proxy);
        let sweeper =
            Upstreams::sweep_periodically(Arc::downgrade(&upstreams), Arc::downgrade(&context));
        runtime.spawn(sweeper);
        let abandoned = AbandonedRequests::new(Arc::clone(&context.proxy_metrics.abandoned));
        let abandoned = Arc::new(abandoned);
        let settle_watch = Arc::new(SettleWatch::default());
        let watch = Arc::clone(&settle_watch);
        runtime.spawn(async move { watch.run().await });
        let limits = Arc::default();
        Self { proxy: Arc::new(Proxy { context, upstreams, abandoned, limits, settle_watch }) }
    }
}

impl FrontEnd for ProxyFrontEnd {
    const ALPN: &'static [&'static [u8]] = &[b"h2", b"http/1.1"];
    const NEEDS_KEYS: bool = false;

    fn serve(
        self: Arc<Self>,
        stream: ConnectionStream,
        connection: Arc<Connection>,
    ) -> impl Future<Output = ()> + Send {
        connection::serve(stream, connection, Arc::clone(&self.proxy))
    }

    fn refusal(&self, limit: ConnectionLimit) -> &'static [u8] {
        overload::response(limit)
    }
}
