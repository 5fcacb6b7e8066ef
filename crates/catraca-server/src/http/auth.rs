//! Authentication and authorization: API keys, the role that each endpoint needs, and the caller.
//!
//! Without keys every program on this machine may call everything, but a web page of another site
//! may not: `Host` and `Origin` are checked. With keys a request belongs to its key, which names
//! the namespace and may fix attributes. Responses never distinguish an unknown key from a
//! malformed one, and only the hashes of keys are stored.

pub mod hash;
mod hosts;
mod keys;
pub mod roles;

use std::sync::Arc;

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use bytes::Bytes;
use catraca::Subject;
use catraca::core::request::DEFAULT_NAMESPACE;
use http_body_util::Full;

use self::roles::{Access, Endpoint, EndpointLookup, HostCheck, Reach, Role};
use super::response::problem::{FullResponse, Problem};
use super::router;

use keys::Keys;
pub use keys::check_plain_name as plain_name;

/// The header for the key of a proxy, which forwards its client's `Authorization`.
const KEY_HEADER: HeaderName = HeaderName::from_static("catraca-key");

/// The name of every caller while there are no keys.
const LOCAL_NAME: &str = "local";

/// Admits or refuses requests.
pub struct Guard {
    keys: Keys,
    hosts: Vec<String>,
    metrics_open: bool,
    /// The caller of every request while there are no keys, and of requests to open endpoints.
    local: Arc<Caller>,
}

/// The sender of a request, as its key describes it.
#[derive(Debug)]
pub struct Caller {
    /// The key's name; the audit records it as the operator.
    name: String,
    role: Role,
    namespace: Option<String>,
    /// Attributes that the key fixes; a request cannot send other values.
    fix: Vec<(String, String)>,
}

impl Guard {
    /// Reads the keys of a catalog. `hosts` are the names under which this server may be called.
    pub fn read(catalog: &catraca::Catalog, hosts: Vec<String>) -> anyhow::Result<Self> {
        let section = catalog.settings.sections.get("auth");
        let keys = Keys::read(section)?;
        let metrics_open = keys::metrics_open(section)?;
        let name = LOCAL_NAME.to_owned();
        let local = Caller { name, role: Role::Admin, namespace: None, fix: Vec::new() };
        Ok(Self { keys, hosts, metrics_open, local: Arc::new(local) })
    }

    /// Whether requests need a key.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether the sender of these headers may see details: it sent a valid key, or the server has
    /// no keys and `Host` is a name of this server.
    pub fn may_see_details(&self, headers: &HeaderMap) -> bool {
        if self.keys.is_empty() {
            return hosts::check(headers, &self.hosts).is_ok();
        }
        let presented = presented_key(headers).ok().flatten();
        presented.is_some_and(|key| self.keys.find(key).is_some())
    }

    /// The caller of a request, or the response that refuses it, which is boxed because it is
    /// large. `is_proxy` returns whether the request comes from a trusted proxy.
    pub fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        is_proxy: impl Fn() -> bool,
    ) -> Result<Arc<Caller>, Box<FullResponse>> {
        let lookup = roles::find(method.as_str(), path);
        if self.keys.is_empty() && checks_host(&lookup, is_proxy) {
            let checked = hosts::check(headers, &self.hosts);
            checked.map_err(|problem| Box::new(problem.to_response()))?;
        }
        let is_open = match lookup {
            EndpointLookup::Found(endpoint) if endpoint.access == Access::Metrics => {
                self.metrics_open
            }
            EndpointLookup::Found(endpoint) => endpoint.access == Access::Open,
            _ => false,
        };
        if is_open {
            return Ok(Arc::clone(&self.local));
        }
        let caller = self.caller(headers)?;
        // An unknown path is reported only to callers with a valid key.
        match lookup {
            EndpointLookup::Found(endpoint) => {
                self.check_access(endpoint, &caller, headers)
                    .map_err(|problem| Box::new(problem.to_response()))?;
                Ok(caller)
            }
            EndpointLookup::WrongMethod(allow) => Err(Box::new(wrong_method(method, path, &allow))),
            EndpointLookup::UnknownPath => Err(Box::new(router::unknown_call(path).to_response())),
        }
    }

    /// The caller whose key is in these headers.
    fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Box<FullResponse>> {
        if self.keys.is_empty() {
            return Ok(Arc::clone(&self.local));
        }
        let key = presented_key(headers).map_err(|()| unknown_key())?.ok_or_else(no_key)?;
        Ok(self.keys.find(key).ok_or_else(unknown_key)?)
    }

    /// Checks the caller's role and namespace, and for admin endpoints `Host` and `Origin`.
    fn check_access(
        &self,
        endpoint: &Endpoint,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        let least = match endpoint.access {
            Access::Least(least) => least,
            Access::Open | Access::Metrics => Role::Read,
        };
        if caller.role < least {
            return Err(forbidden(
                "role-too-low",
                format!("this call needs a key of role {}", role_name(least)),
            ));
        }
        if endpoint.reach == Reach::Catalog && caller.namespace.is_some() {
            let detail = "this call covers all namespaces, and this key is bound to one; use a key \
                          without `namespace`";
            return Err(forbidden("namespace-bound-key", detail));
        }
        // Without keys, `admit` has checked them already.
        if least == Role::Admin && self.has_keys() {
            return hosts::check(headers, &self.hosts);
        }
        Ok(())
    }
}

impl Caller {
    /// The caller of a request that `Guard::admit` has admitted.
    pub fn of_request<B>(request: &Request<B>) -> Option<&Arc<Self>> {
        request.extensions().get()
    }

    /// The name of the caller's key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the caller's role.
    pub fn role(&self) -> &'static str {
        role_name(self.role)
    }

    /// The namespace of the caller's counters and locks.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The tenant that the key fixes, or else the stated one; a stated tenant that differs from the
    /// fixed one is refused.
    pub fn allowed_tenant(&self, stated: Option<&str>) -> Result<Option<String>, Problem> {
        let fixed = self.fix.iter().find(|(name, _)| name == "tenant").map(|(_, value)| value);
        match (fixed, stated) {
            (Some(fixed), Some(stated)) if fixed != stated => {
                let detail = "this key fixes the attribute `tenant` to another value; leave it out";
                Err(forbidden("fixed-attribute", detail))
            }
            (Some(fixed), _) => Ok(Some(fixed.clone())),
            (None, stated) => Ok(stated.map(str::to_owned)),
        }
    }

    /// The subject with the attributes that the key fixes; another value for one is refused.
    pub fn with_fixed_attributes<'a>(
        &'a self,
        mut subject: Subject<'a>,
    ) -> Result<Subject<'a>, Problem> {
        for (name, value) in &self.fix {
            let stated = subject.pairs().iter().find(|(stated, _)| stated == name);
            match stated.map(|(_, stated)| *stated) {
                None => subject = subject.with(name, value),
                Some(stated) if stated == value => {}
                Some(_) => {
                    let detail = format!(
                        "this key fixes the attribute `{name}` to another value; leave it out"
                    );
                    return Err(forbidden("fixed-attribute", detail));
                }
            }
        }
        Ok(subject)
    }
}

/// Whether `Host` and `Origin` are checked while there are no keys; also for unknown paths.
fn checks_host(lookup: &EndpointLookup, is_proxy: impl Fn() -> bool) -> bool {
    match lookup {
        EndpointLookup::Found(endpoint) => match endpoint.host {
            HostCheck::Checked => true,
            HostCheck::ExceptProxies => !is_proxy(),
            HostCheck::Never => false,
        },
        EndpointLookup::WrongMethod(_) | EndpointLookup::UnknownPath => true,
    }
}

/// The key that a request presents, if any. A repeated header or another scheme is an error.
fn presented_key(headers: &HeaderMap) -> Result<Option<&[u8]>, ()> {
    let single = |name: &HeaderName| {
        let mut lines = headers.get_all(name).iter();
        let line = lines.next();
        if lines.next().is_some() { Err(()) } else { Ok(line.map(HeaderValue::as_bytes)) }
    };
    // First, because a proxy forwards the `Authorization` of its client, which is not for us.
    if let Some(key) = single(&KEY_HEADER)? {
        return Ok(Some(key));
    }
    let Some(line) = single(&header::AUTHORIZATION)? else { return Ok(None) };
    match line.split_at_checked("bearer ".len()) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            Ok(Some(key.trim_ascii()))
        }
        _ => Err(()),
    }
}

fn role_name(role: Role) -> &'static str {
    let named = roles::ROLES.iter().find(|(_, other)| *other == role);
    named.map_or("admin", |(name, _)| name)
}

fn forbidden(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, code, detail)
}

fn no_key() -> FullResponse {
    let detail = "missing API key: send `Authorization: Bearer KEY`; `catraca keygen` makes one";
    unauthorized_response("no-key", detail, "Bearer realm=\"catraca\"")
}

fn unknown_key() -> FullResponse {
    let detail = "unknown API key: send another one, or add its hash to the catalog as an \
                  `[[auth.key]]`";
    unauthorized_response(
        "unknown-key",
        detail,
        "Bearer realm=\"catraca\", error=\"invalid_token\"",
    )
}

fn unauthorized_response(
    code: &'static str,
    detail: &str,
    challenge: &'static str,
) -> FullResponse {
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, code, detail).to_response();
    let challenge = HeaderValue::from_static(challenge);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// 405 with the methods of the path in `Allow`; 204 for OPTIONS, which asks for them.
fn wrong_method(method: &Method, path: &str, allow: &str) -> FullResponse {
    let mut response = if method == Method::OPTIONS {
        let mut response = Response::new(Full::new(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    } else {
        router::wrong_method(method, path).to_response()
    };
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}
