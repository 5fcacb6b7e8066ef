//! The table of endpoints, with the role and the reach that each needs.
//!
//! A path that is not in this table is refused before the router sees it, so that an endpoint
//! that was forgotten here is closed, not open. Every endpoint has a route and an entry in
//! `openapi/operations`. Must depend on no module but `role`: the integration tests include both
//! files and try every endpoint in every way that is forbidden.

pub use super::role::{ROLES, Role};

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every client, also without a key.
    Open,
    /// Keys of any role; every client with `[auth] metrics = "open"`.
    Metrics,
    /// Keys of this role or a higher one.
    Least(Role),
}

/// Which namespaces an endpoint can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only the namespace of the key.
    Namespace,
    /// All namespaces; keys that are bound to one may not call it.
    Catalog,
}

/// When `Host` and `Origin` must be those of this server, so that no web page of another site can
/// call it from a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCheck {
    /// For endpoints of the admin role, and for every request while there are no keys.
    Checked,
    /// While there are no keys, except from trusted proxies, which send their client's `Host`.
    ExceptProxies,
    /// Never: load balancers probe under any name.
    Never,
}

/// One path with its methods.
#[derive(Debug)]
pub struct Endpoint {
    /// The methods; empty for any.
    pub methods: &'static [&'static str],
    /// The path; `{x}` is any one segment, `{*x}` the rest of the path, which may be empty.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Which namespaces it can see.
    pub reach: Reach,
    /// When its `Host` and `Origin` are checked.
    pub host: HostCheck,
}

/// The result of a lookup in the table.
#[derive(Debug)]
pub enum EndpointLookup {
    /// The endpoint of the request.
    Found(&'static Endpoint),
    /// The path exists, but not with this method; holds the value for `Allow`.
    WrongMethod(String),
    /// The path does not exist.
    UnknownPath,
}

/// Every endpoint; the first that matches counts. `/v1/check` is first because it is called most.
pub const ENDPOINTS: [Endpoint; 51] = [
    namespace("/v1/check", &["POST"], Role::Check),
    namespace("/v1/peek", &["POST"], Role::Check),
    namespace("/v1/settle", &["POST"], Role::Check),
    namespace("/v1/credit", &["POST"], Role::Check),
    namespace("/v1/buckets", &["POST"], Role::Read),
    namespace("/v1/buckets/reconcile", &["POST"], Role::Check),
    namespace("/v1/buckets/{policy}", &["POST"], Role::Read),
    for_proxies(namespace("/v1/authorize", &[], Role::Check)),
    for_proxies(namespace("/v1/authorize/{*rest}", &[], Role::Check)),
    for_proxies(namespace("/v1/gates/{gate}/authorize", &[], Role::Check)),
    for_proxies(namespace("/v1/gates/{gate}/authorize/{*rest}", &[], Role::Check)),
    namespace("/v1/locks/acquire", &["POST"], Role::Check),
    namespace("/v1/locks/renew", &["POST"], Role::Check),
    namespace("/v1/locks/release", &["POST"], Role::Check),
    namespace("/v1/locks", &["GET", "DELETE"], Role::Admin),
    namespace("/v1/locks/{fence}", &["DELETE"], Role::Admin),
    namespace("/v1/slots/hold", &["POST"], Role::Check),
    namespace("/v1/slots/confirm", &["POST"], Role::Check),
    namespace("/v1/slots/cancel", &["POST"], Role::Check),
    namespace("/v1/slots/move", &["POST"], Role::Check),
    namespace("/v1/slots", &["GET"], Role::Check),
    namespace("/v1/stats/locks", &["GET"], Role::Admin),
    namespace("/v1/whoami", &["GET"], Role::Read),
    Endpoint { host: HostCheck::Never, ..open("/healthz") },
    Endpoint { host: HostCheck::Never, ..open("/readyz") },
    Endpoint { access: Access::Metrics, ..open("/metrics") },
    open("/openapi.json"),
    open("/docs"),
    open("/docs/style.css"),
    open("/docs/errors"),
    open("/docs/errors/{code}"),
    catalog("/v1/policies", &["GET"], Role::Read),
    catalog("/v1/policies/{name}", &["GET"], Role::Read),
    catalog("/v1/policies/{name}/mode", &["PUT"], Role::Admin),
    catalog("/v1/config", &["GET"], Role::Read),
    catalog("/v1/config/reload", &["POST"], Role::Admin),
    catalog("/v1/facts", &["GET"], Role::Admin),
    catalog("/v1/facts/{attribute}/{value}", &["GET", "PUT", "DELETE"], Role::Admin),
    catalog("/v1/blocks", &["GET", "POST"], Role::Admin),
    catalog("/v1/blocks/{id}", &["GET", "DELETE"], Role::Admin),
    catalog("/v1/blocklist", &["GET", "POST", "DELETE"], Role::Admin),
    catalog("/v1/allowlist", &["GET", "POST", "DELETE"], Role::Admin),
    catalog("/v1/reset", &["POST"], Role::Admin),
    catalog("/v1/stats", &["GET"], Role::Admin),
    catalog("/v1/stats/top-blocked", &["GET"], Role::Admin),
    catalog("/v1/stats/actions", &["GET"], Role::Admin),
    catalog("/v1/audit", &["GET"], Role::Admin),
    catalog("/v1/events", &["GET"], Role::Admin),
    catalog("/v1/selftest", &["GET", "POST"], Role::Admin),
    catalog("/v1/privacy/export", &["POST"], Role::Admin),
    catalog("/v1/privacy/erase", &["POST"], Role::Admin),
];

/// Looks up the endpoint of a request.
pub fn find(method: &str, path: &str) -> EndpointLookup {
    let mut allow = Vec::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| matches_path(endpoint.path, path)) {
        if endpoint.accepts(method) {
            return EndpointLookup::Found(endpoint);
        }
        allow.extend(endpoint.methods);
    }
    // `Allow` lists HEAD after GET, although the table names only GET.
    match allow.iter().position(|method| *method == "GET") {
        _ if allow.is_empty() => EndpointLookup::UnknownPath,
        Some(index) => {
            allow.insert(index + 1, "HEAD");
            EndpointLookup::WrongMethod(allow.join(","))
        }
        None => EndpointLookup::WrongMethod(allow.join(",")),
    }
}

impl Endpoint {
    /// The path as OpenAPI writes it, which has no parameters with slashes.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Whether the endpoint accepts a method; GET includes HEAD.
    pub fn accepts(&self, method: &str) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        self.methods.is_empty() || self.methods.contains(&method)
    }
}

/// Compares segment by segment, as the router does: nothing is decoded, and `{x}` matches no empty
/// segment.
fn matches_path(pattern: &str, path: &str) -> bool {
    if pattern == path {
        return true;
    }
    if !pattern.contains('{') {
        return false;
    }
    let mut wanted = pattern.split('/');
    let mut given = path.split('/');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            // The rest may be empty, but the slash before it is required.
            (Some(wanted), Some(_)) if wanted.starts_with("{*") => return true,
            (Some(wanted), Some(given)) if wanted == given => {}
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            _ => return false,
        }
    }
}

/// An endpoint that sees only the namespace of its key.
const fn namespace(path: &'static str, methods: &'static [&'static str], role: Role) -> Endpoint {
    Endpoint { reach: Reach::Namespace, ..catalog(path, methods, role) }
}

/// An endpoint that sees all namespaces.
const fn catalog(path: &'static str, methods: &'static [&'static str], role: Role) -> Endpoint {
    Endpoint {
        methods,
        path,
        access: Access::Least(role),
        reach: Reach::Catalog,
        host: HostCheck::Checked,
    }
}

/// An endpoint that needs no key.
const fn open(path: &'static str) -> Endpoint {
    Endpoint { access: Access::Open, ..catalog(path, &["GET"], Role::Read) }
}

/// An endpoint that proxies call on behalf of their clients.
const fn for_proxies(endpoint: Endpoint) -> Endpoint {
    Endpoint { host: HostCheck::ExceptProxies, ..endpoint }
}
