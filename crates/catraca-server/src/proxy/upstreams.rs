//! All upstreams, by their URLs, and the order in which those of a route are tried.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use catraca::core::catalog::{Catalog, Route};
use parking_lot::RwLock;
use tracing::warn;

use super::upstream::Upstream;
use crate::config::ProxySection;
use crate::context::ServerContext;

/// How often idle connections are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// All upstreams that have got a request.
#[derive(Default)]
pub struct Upstreams {
    /// None is an upstream that cannot be used.
    by_url: RwLock<HashMap<String, Option<Arc<Upstream>>>>,
    /// The certificates that sign those of upstreams; absent means those of the system.
    ca_file: Option<PathBuf>,
    /// Reports upstreams that cannot be used.
    server: Option<Weak<ServerContext>>,
}

/// The URLs of a route's upstreams.
pub fn upstream_urls(route: &Route) -> &[String] {
    &route.upstreams
}

impl Upstreams {
    /// No upstreams yet.
    pub fn new(ca_file: Option<PathBuf>, server: Weak<ServerContext>) -> Self {
        Self { by_url: RwLock::default(), ca_file, server: Some(server) }
    }

    /// The upstreams of a route in the order in which they are tried: round robin, with those that
    /// failed a moment ago at the end.
    pub fn in_order(&self, route: &Route, settings: &ProxySection) -> Vec<Arc<Upstream>> {
        let urls = upstream_urls(route).iter();
        let mut upstreams: Vec<_> =
            urls.filter_map(|url| self.find_or_insert(url, settings)).collect();
        take_turns(&mut upstreams);
        upstreams
    }

    fn find_or_insert(&self, url: &str, settings: &ProxySection) -> Option<Arc<Upstream>> {
        if let Some(found) = self.by_url.read().get(url) {
            return found.clone();
        }
        let made = Upstream::new(url, settings, self.ca_file.as_deref());
        if let Err(why) = &made {
            self.report_unusable(url, why);
        }
        let mut by_url = self.by_url.write();
        by_url.entry(url.to_owned()).or_insert(made.ok().map(Arc::new)).clone()
    }

    fn report_unusable(&self, url: &str, why: &str) {
        warn!(upstream = url, why, "the upstream cannot be used: its requests get a 502");
        if let Some(server) = self.server.as_ref().and_then(Weak::upgrade) {
            server.proxy_metrics.note_unusable(url, why.to_owned());
        }
    }

    /// Makes the upstreams of a catalog, so that those that cannot be used are reported before they
    /// get a request.
    pub fn prepare(&self, catalog: &Catalog, settings: &ProxySection) {
        for url in catalog.routes.iter().flat_map(upstream_urls) {
            self.find_or_insert(url, settings);
        }
    }

    /// Closes old connections, and forgets upstreams that the catalog has no more.
    fn sweep(&self, server: &ServerContext) {
        let catalog = server.app.catalog();
        let settings = &server.reloadable.load().process.proxy;
        let is_used =
            |url: &String| catalog.routes.iter().any(|route| upstream_urls(route).contains(url));
        self.by_url.write().retain(|url, _| is_used(url));
        server.proxy_metrics.retain_unusable(is_used);
        self.prepare(&catalog, settings);
        for upstream in self.by_url.read().values().flatten() {
            upstream.close_old_connections(settings.keep_alive);
        }
    }

    /// Sweeps from time to time, until the proxy is gone.
    pub async fn sweep_periodically(upstreams: Weak<Self>, context: Weak<ServerContext>) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let Some(upstreams) = upstreams.upgrade() else { return };
            let Some(context) = context.upgrade() else { return };
            upstreams.sweep(&context);
        }
    }
}

/// Moves the upstream whose turn it is to the front, and those that failed to the end.
fn take_turns(upstreams: &mut [Arc<Upstream>]) {
    if upstreams.len() > 1 {
        let turn = upstreams[0].turns.fetch_add(1, Ordering::Relaxed);
        let first = turn % upstreams.len();
        upstreams.rotate_left(first);
        // Stable: the turns of those that work stay.
        upstreams.sort_by_key(|upstream| upstream.is_down());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn upstreams_take_turns_and_those_that_failed_come_last() {
        let settings = config::parse("").unwrap().process.proxy;
        let upstreams = Upstreams::default();
        let urls = ["http://a", "http://b", "http://c"];
        let all = urls.map(|url| upstreams.find_or_insert(url, &settings).unwrap());
        let order = || {
            let mut order = all.to_vec();
            take_turns(&mut order);
            order.iter().map(|one| &one.url[6..]).collect::<String>()
        };
        assert_eq!([order(), order(), order(), order()], ["/a/b/c", "/b/c/a", "/c/a/b", "/a/b/c"]);
        all[1].mark_down(Duration::from_secs(60));
        assert_eq!([order(), order()], ["/c/a/b", "/c/a/b"]);
        all[1].mark_up();
        assert_eq!([order(), order()], ["/a/b/c", "/b/c/a"]);
    }
}
