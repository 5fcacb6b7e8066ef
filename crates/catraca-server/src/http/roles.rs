//! Who may call what: one table of every call, with the least role and the reach that it needs.
//!
//! A path without a row is refused, whatever the router would say, so that a call that somebody
//! forgets here is closed and not open. Every row has a route and an entry in `api/calls`. Must
//! depend on nothing: a test reads this very file and tries every row in every forbidden way.

/// What a key may do; every role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look at states and at the catalog.
    Read,
    /// Decide, settle and credit.
    Check,
    /// Everything.
    Admin,
}

/// Every role by its name, the least first.
pub const ROLES: [(&str, Role); 3] =
    [("read", Role::Read), ("check", Role::Check), ("admin", Role::Admin)];

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, also without a key.
    Open,
    /// Keys that may read, or everybody where `[auth] metrics` says so.
    Metrics,
    /// Keys of this role or a greater one.
    Least(Role),
}

/// How far a call sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The namespace of its key alone.
    Namespace,
    /// All namespaces, so keys that are bound to one may not call it.
    Catalog,
}

/// Whether `Host` and `Origin` of a call must be this server's, so that no page of another site can
/// steer a browser here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCheck {
    /// For calls of the admin role, and for every call while there are no keys.
    Checked,
    /// While there are no keys, but not from trusted proxies: they send their client's `Host`.
    ExceptProxies,
    /// Never: load balancers ask by whatever name they know.
    Never,
}

/// One call.
#[derive(Debug)]
pub struct Row {
    /// The methods; none is any.
    pub methods: &'static [&'static str],
    /// The path; `{x}` is one segment of any name, `{*x}` the rest of the path, an empty rest too.
    pub path: &'static str,
    /// Who may call.
    pub access: Access,
    /// How far it sees.
    pub reach: Reach,
    /// Whether its `Host` and `Origin` are checked.
    pub host: HostCheck,
}

/// What the table says of a request.
#[derive(Debug)]
pub enum Found {
    /// A call.
    Row(&'static Row),
    /// The path takes these methods and not this one.
    OtherMethod(String),
    /// There is no such path.
    Nothing,
}

/// Every call; the first row that fits counts, and the check comes first because it is asked most.
pub const ROWS: [Row; 51] = [
    own("/v1/check", &["POST"], Role::Check),
    own("/v1/peek", &["POST"], Role::Check),
    own("/v1/settle", &["POST"], Role::Check),
    own("/v1/credit", &["POST"], Role::Check),
    own("/v1/buckets", &["POST"], Role::Read),
    own("/v1/buckets/reconcile", &["POST"], Role::Check),
    own("/v1/buckets/{policy}", &["POST"], Role::Read),
    proxied(own("/v1/authorize", &[], Role::Check)),
    proxied(own("/v1/authorize/{*rest}", &[], Role::Check)),
    proxied(own("/v1/gates/{gate}/authorize", &[], Role::Check)),
    proxied(own("/v1/gates/{gate}/authorize/{*rest}", &[], Role::Check)),
    own("/v1/locks/acquire", &["POST"], Role::Check),
    own("/v1/locks/renew", &["POST"], Role::Check),
    own("/v1/locks/release", &["POST"], Role::Check),
    own("/v1/locks", &["GET", "DELETE"], Role::Admin),
    own("/v1/locks/{fence}", &["DELETE"], Role::Admin),
    own("/v1/slots/hold", &["POST"], Role::Check),
    own("/v1/slots/confirm", &["POST"], Role::Check),
    own("/v1/slots/cancel", &["POST"], Role::Check),
    own("/v1/slots/move", &["POST"], Role::Check),
    own("/v1/slots", &["GET"], Role::Check),
    own("/v1/stats/locks", &["GET"], Role::Admin),
    own("/v1/whoami", &["GET"], Role::Read),
    Row { host: HostCheck::Never, ..open("/healthz") },
    Row { host: HostCheck::Never, ..open("/readyz") },
    Row { access: Access::Metrics, ..open("/metrics") },
    open("/openapi.json"),
    open("/docs"),
    open("/docs/style.css"),
    open("/docs/errors"),
    open("/docs/errors/{code}"),
    whole("/v1/policies", &["GET"], Role::Read),
    whole("/v1/policies/{name}", &["GET"], Role::Read),
    whole("/v1/policies/{name}/mode", &["PUT"], Role::Admin),
    whole("/v1/config", &["GET"], Role::Read),
    whole("/v1/config/reload", &["POST"], Role::Admin),
    whole("/v1/facts", &["GET"], Role::Admin),
    whole("/v1/facts/{attribute}/{value}", &["GET", "PUT", "DELETE"], Role::Admin),
    whole("/v1/blocks", &["GET", "POST"], Role::Admin),
    whole("/v1/blocks/{id}", &["GET", "DELETE"], Role::Admin),
    whole("/v1/blocklist", &["GET", "POST", "DELETE"], Role::Admin),
    whole("/v1/allowlist", &["GET", "POST", "DELETE"], Role::Admin),
    whole("/v1/reset", &["POST"], Role::Admin),
    whole("/v1/stats", &["GET"], Role::Admin),
    whole("/v1/stats/top-blocked", &["GET"], Role::Admin),
    whole("/v1/stats/actions", &["GET"], Role::Admin),
    whole("/v1/audit", &["GET"], Role::Admin),
    whole("/v1/events", &["GET"], Role::Admin),
    whole("/v1/selftest", &["GET", "POST"], Role::Admin),
    whole("/v1/privacy/export", &["POST"], Role::Admin),
    whole("/v1/privacy/erase", &["POST"], Role::Admin),
];

/// The row of a request.
pub fn find(method: &str, path: &str) -> Found {
    let mut allow = Vec::new();
    for row in ROWS.iter().filter(|row| fits(row.path, path)) {
        if row.takes(method) {
            return Found::Row(row);
        }
        allow.extend(row.methods);
    }
    match allow.iter().position(|method| *method == "GET") {
        _ if allow.is_empty() => Found::Nothing,
        Some(at) => {
            allow.insert(at + 1, "HEAD");
            Found::OtherMethod(allow.join(","))
        }
        None => Found::OtherMethod(allow.join(",")),
    }
}

impl Row {
    /// The path as OpenAPI writes it, which knows no parameter with slashes in it.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Whether a method is one of this row's; whoever may GET may ask for the head alone.
    pub fn takes(&self, method: &str) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        self.methods.is_empty() || self.methods.contains(&method)
    }
}

/// Piece by piece, as the router does it: nothing is decoded, and no piece is empty.
fn fits(pattern: &str, path: &str) -> bool {
    if pattern == path {
        return true;
    }
    if !pattern.contains('{') {
        return false;
    }
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(_)) if wanted.starts_with("{*") => return true,
            (Some(wanted), Some(given)) if wanted == given => {}
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            _ => return false,
        }
    }
}

const fn own(path: &'static str, methods: &'static [&'static str], role: Role) -> Row {
    Row { reach: Reach::Namespace, ..whole(path, methods, role) }
}

const fn whole(path: &'static str, methods: &'static [&'static str], role: Role) -> Row {
    let (access, reach) = (Access::Least(role), Reach::Catalog);
    Row { methods, path, access, reach, host: HostCheck::Checked }
}

const fn open(path: &'static str) -> Row {
    Row { access: Access::Open, ..whole(path, &["GET"], Role::Read) }
}

/// A call that proxies make on behalf of their clients.
const fn proxied(row: Row) -> Row {
    Row { host: HostCheck::ExceptProxies, ..row }
}
