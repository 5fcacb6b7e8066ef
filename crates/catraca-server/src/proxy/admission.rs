//! From a request to a decision: its route, the attributes that the route reads, and the check.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use catraca::core::address::forwarded::{ClientAddress, find_client};
use catraca::core::catalog::{Catalog, Network, PathCase, Route};
use catraca::core::policy::Name;
use catraca::core::route::{AmbiguousPath, CanonicalPath, RouteRequest};
use catraca::http_outcome::OutcomeNeeds;
use catraca::http_request::{RequestError, RequestParts, RouteValues, header_lines};
use catraca::{Check, CheckMode, Decision, Error, Subject};
use hyper::http::request::Parts;
use hyper::http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use super::pending_settle::{OpenSettle, PendingSettle, SettleContext};
use super::settle_call::report_failure;
use super::settle_deadline::SettleDeadline;
use super::upstreams::upstream_urls;
use crate::config::ReloadableConfig;
use crate::http_wire::problem::Problem;

/// What a request is checked with.
pub struct CheckInput {
    namespace: Name,
    gate: Name,
    values: RouteValues,
}

/// A request whose route has an upstream.
pub struct RoutedRequest<'c> {
    /// The route.
    pub route: &'c Route,
    /// The canonical path, which the route was matched against.
    path: CanonicalPath,
}

impl CheckInput {
    /// The check.
    pub fn check(&self) -> Check<'_> {
        let pairs = self.values.attributes.iter().map(|(name, value)| (&**name, value.as_str()));
        let mut check = Check::new(&self.gate, pairs.collect::<Subject<'_>>());
        check.namespace = &self.namespace;
        check.cost = self.values.cost;
        check.reference = self.values.reference.as_deref();
        check.lists = !self.values.skips_lists;
        check
    }

    /// What the rules of the gate read of the response.
    pub fn needs(&self, catalog: &Catalog) -> OutcomeNeeds {
        OutcomeNeeds::of_gate(catalog, &self.gate)
    }

    /// Until when the check is settled that was admitted by this decision.
    pub fn settle_deadline(
        &self,
        catalog: &Catalog,
        decision: &Decision,
        begun: Instant,
    ) -> SettleDeadline {
        SettleDeadline::new(catalog, &self.gate, decision, begun)
    }
}

/// The client's address, from the connection and the headers of trusted proxies.
pub fn client_address(
    config: &ReloadableConfig,
    peer: IpAddr,
    headers: &HeaderMap,
) -> ClientAddress {
    let source = &config.process.server.client_address;
    let lines = source.header().map(|name| header_lines(headers, name));
    find_client(peer, &lines.unwrap_or_default(), source, &config.network.trusted_proxies)
}

/// Finds the route of a request.
pub fn find_route<'c>(
    catalog: &'c Catalog,
    head: &Parts,
    target: &str,
) -> Result<RoutedRequest<'c>, Problem> {
    let request = RouteRequest { method: head.method.as_str(), target };
    let found = catalog.route(&request).map_err(ambiguous_path)?;
    // The target of `OPTIONS *` is no path.
    let has_path = target.starts_with('/');
    let found = found.filter(|(route, _)| has_path && !upstream_urls(route).is_empty());
    let (route, path) = found.ok_or_else(|| no_upstream(&request))?;
    Ok(RoutedRequest { route, path })
}

impl RoutedRequest<'_> {
    /// Reads what the request is checked with.
    pub fn read(
        &self,
        catalog: &Catalog,
        parts: &RequestParts<'_>,
        client: &ClientAddress,
        namespace: &Name,
    ) -> Result<CheckInput, Problem> {
        let mut values = parts.read(self.route, &self.path).map_err(unreadable)?;
        let gate = values.gate(catalog, self.route)?.clone();
        // A route cannot replace the client's address.
        values.attributes.retain(|(name, _)| &**name != "ip");
        values.attributes.push(("ip".into(), client.address.to_string()));
        Ok(CheckInput { namespace: Name::clone(namespace), gate, values })
    }

    /// The path for the upstream: the canonical one with the letters that the client sent. A
    /// catalog that matches letters of any case has folded them.
    pub fn forwarded_path(self, target: &str, network: &Network) -> Result<CanonicalPath, Problem> {
        if network.path_case != PathCase::Insensitive {
            return Ok(self.path);
        }
        let as_sent = Network { path_case: PathCase::Sensitive, ..network.clone() };
        CanonicalPath::canonical(target, &as_sent).map_err(ambiguous_path)
    }
}

/// Checks a request. If the client hangs up while a store works on the check, the check may have
/// been charged: it runs to its end, and is settled. Returns the decision, and the settle if there
/// is something to settle.
pub async fn decide(
    context: &SettleContext,
    input: &Arc<CheckInput>,
    needs: OutcomeNeeds,
) -> Result<(Decision, Option<PendingSettle>), Error> {
    let server = Arc::clone(&context.server);
    let owned = Arc::clone(input);
    let future = async move { server.decide(&owned.check(), CheckMode::Check).await };
    let future: CheckFuture = Box::pin(future);
    let guard = context.begin_settle();
    let namespace = Name::clone(&input.namespace);
    let mut pending = PendingCheck { context, namespace, needs, running: Some((future, guard)) };
    poll_fn(|cx| pending.poll(cx)).await
}

type CheckFuture = Pin<Box<dyn Future<Output = Result<Decision, Error>> + Send>>;

/// A check that runs to its end even if it is dropped.
struct PendingCheck<'c> {
    context: &'c SettleContext,
    namespace: Name,
    needs: OutcomeNeeds,
    /// Absent when it is decided.
    running: Option<(CheckFuture, OpenSettle)>,
}

impl PendingCheck<'_> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Decision, Option<PendingSettle>), Error>> {
        let Some((future, _)) = &mut self.running else { return Poll::Pending };
        let decided = ready!(future.as_mut().poll(cx));
        let guard = self.running.take().map(|(_, guard)| guard);
        let decision = decided?;
        // A denied request has nothing to settle.
        let ticket = decision.ticket.clone().filter(|_| decision.allowed);
        let settle = ticket.zip(guard).map(|(ticket, guard)| {
            let namespace = Name::clone(&self.namespace);
            PendingSettle::new(self.context.clone(), guard, namespace, ticket, self.needs)
        });
        Poll::Ready(Ok((decision, settle)))
    }
}

impl Drop for PendingCheck<'_> {
    fn drop(&mut self) {
        let Some((future, guard)) = self.running.take() else { return };
        let context = self.context.clone();
        let namespace = Name::clone(&self.namespace);
        let needs = self.needs;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The server has stopped.
            return report_failure(&context.server, &"no runtime is left to finish its check");
        };
        runtime.spawn(async move {
            if let Ok(Decision { ticket: Some(ticket), .. }) = future.await {
                drop(PendingSettle::new(context, guard, namespace, ticket, needs));
            }
        });
    }
}

/// The problem of a request that its route cannot read.
pub fn unreadable(error: RequestError) -> Problem {
    Problem::new(error.status(), error.code(), error.to_string())
}

/// 400: the path has no canonical form.
pub fn ambiguous_path(why: AmbiguousPath) -> Problem {
    let detail = format!("servers read the path of the request in different ways: {why}");
    Problem::bad("ambiguous-path", detail)
}

fn no_upstream(request: &RouteRequest<'_>) -> Problem {
    // Without the query, which may be private.
    let path = request.target.split('?').next().unwrap_or_default();
    let detail = format!("no route with an upstream matches {} {path}", request.method);
    Problem::new(StatusCode::NOT_FOUND, "no-upstream", detail)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::pin::pin;

    use catraca::core::request::DEFAULT_NAMESPACE;
    use tokio::sync::oneshot;

    use super::*;
    use crate::config;
    use crate::server::{Server, ServerOptions};

    #[test]
    fn a_check_that_outlives_its_client_is_waited_for() {
        let catalog = config::parse("[policy.site]\nby = ['ip']\nwindow = '9 per 1m'\n").unwrap();
        let options = ServerOptions { catalog, file: None, allow_no_keys: true };
        let server = Server::open(options).unwrap();
        let guard = server.context().connections.register(Ipv4Addr::LOCALHOST.into(), None);
        let context = SettleContext {
            server: Arc::clone(server.context()),
            connection: Arc::clone(guard.connection()),
            open: Arc::default(),
        };
        server.handle().block_on(async {
            let (end, store) = oneshot::channel();
            let needs = OutcomeNeeds::of_gate(&context.server.app.catalog(), "site");
            let checking: CheckFuture = Box::pin(async { store.await.unwrap() });
            let running = Some((checking, context.begin_settle()));
            let namespace = DEFAULT_NAMESPACE.into();
            drop(PendingCheck { context: &context, namespace, needs, running });
            let mut settled = pin!(context.open.wait());
            let is_open = poll_fn(|cx| Poll::Ready(settled.as_mut().poll(cx).is_pending()));
            assert!(is_open.await, "the connection would end before the settle");
            let check = Check::new("site", [("ip", "192.0.2.1")]);
            assert!(end.send(context.server.decide(&check, CheckMode::Check).await).is_ok());
            settled.await;
        });
    }
}
