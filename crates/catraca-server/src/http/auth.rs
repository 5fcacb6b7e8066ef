//! Authentication of HTTP requests: the key from the headers, the role that each endpoint needs,
//! and the check of `Host` and `Origin`.
//!
//! Without keys every program on this machine may call everything, but a web page of another site
//! may not: `Host`, `Origin` and `Sec-Fetch-Site` are checked. Responses never distinguish an
//! unknown key from a malformed one.

mod hosts;

use std::sync::Arc;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};

use super::bodies::problem::{HttpResponse, Problem, full_body, unknown_call, wrong_method};
use super::endpoint::{Access, Endpoint, EndpointLookup, HostCheck, Reach, Role};
use crate::auth::{AuthError, Caller, Guard};
use crate::config::ReloadableConfig;

/// The header for the key of a proxy, which forwards its client's `Authorization`.
const KEY_HEADER: HeaderName = HeaderName::from_static("catraca-key");

/// An admitted request: its endpoint, and who sent it.
pub struct AdmittedCall {
    /// The endpoint that the request calls.
    pub endpoint: &'static Endpoint,
    /// The owner of the key.
    pub caller: Arc<Caller>,
}

/// Admits a request to the endpoint that `lookup` found, or returns the response that refuses it,
/// which is boxed because it is large. `is_proxy` returns whether the request comes from a trusted
/// proxy.
pub fn admit<B>(
    config: &ReloadableConfig,
    request: &Request<B>,
    lookup: EndpointLookup,
    is_proxy: impl Fn() -> bool,
) -> Result<AdmittedCall, Box<HttpResponse>> {
    let guard = &config.guard;
    let headers = request.headers();
    if !guard.has_keys() && checks_host(&lookup, is_proxy) {
        let checked = hosts::check(request.uri(), headers, &config.process.server.hosts);
        let checked = checked.and_then(|()| check_fetch_site(&lookup, headers));
        checked.map_err(|problem| Box::new(problem.to_response()))?;
    }
    if let EndpointLookup::Found(endpoint) = lookup
        && is_open(endpoint, guard)
    {
        return Ok(AdmittedCall { endpoint, caller: guard.local() });
    }
    let caller = find_caller(guard, headers).map_err(unauthorized_response)?;
    // An unknown path is reported only to callers with a valid key.
    match lookup {
        EndpointLookup::Found(endpoint) => {
            check_access(config, endpoint, &caller, request)
                .map_err(|problem| Box::new(problem.to_response()))?;
            Ok(AdmittedCall { endpoint, caller })
        }
        EndpointLookup::WrongMethod(allow) => {
            let path = request.uri().path();
            Err(Box::new(wrong_method_response(request.method(), path, &allow)))
        }
        EndpointLookup::UnknownPath => {
            Err(Box::new(unknown_call(request.method(), request.uri()).to_response()))
        }
    }
}

/// Whether an endpoint needs no key.
fn is_open(endpoint: &Endpoint, guard: &Guard) -> bool {
    match endpoint.rights.access {
        Access::Open => true,
        Access::Metrics => guard.has_open_metrics(),
        Access::Least(_) => false,
    }
}

/// Whether the sender of these headers may see details: it sent a valid key, or the server has no
/// keys and `Host` is a name of this server.
pub fn may_see_details(config: &ReloadableConfig, head: &Parts) -> bool {
    if !config.guard.has_keys() {
        return hosts::check(&head.uri, &head.headers, &config.process.server.hosts).is_ok();
    }
    find_caller(&config.guard, &head.headers).is_ok()
}

/// The caller whose key is in these headers.
fn find_caller(guard: &Guard, headers: &HeaderMap) -> Result<Arc<Caller>, AuthError> {
    if !guard.has_keys() {
        return Ok(guard.local());
    }
    guard.caller(presented_key(headers)?)
}

/// Checks the caller's role and namespace, and for admin endpoints `Host` and `Origin`.
fn check_access<B>(
    config: &ReloadableConfig,
    endpoint: &Endpoint,
    caller: &Caller,
    request: &Request<B>,
) -> Result<(), Problem> {
    let least = match endpoint.rights.access {
        Access::Least(least) => least,
        Access::Open | Access::Metrics => Role::Read,
    };
    caller.require_role(least)?;
    if endpoint.rights.reach == Reach::Catalog {
        caller.require_all_namespaces()?;
    }
    // Without keys, `admit` has checked them already.
    if least.is_of_operators() && config.guard.has_keys() {
        return hosts::check(request.uri(), request.headers(), &config.process.server.hosts);
    }
    Ok(())
}

/// Refuses what a page of another site caused. Open endpoints change nothing and are exempt, so
/// that a link to `/docs` works.
fn check_fetch_site(lookup: &EndpointLookup, headers: &HeaderMap) -> Result<(), Problem> {
    match lookup {
        EndpointLookup::Found(endpoint) if endpoint.rights.access == Access::Open => Ok(()),
        _ => hosts::check_fetch_site(headers),
    }
}

/// Whether `Host` and `Origin` are checked while there are no keys; also for unknown paths.
fn checks_host(lookup: &EndpointLookup, is_proxy: impl Fn() -> bool) -> bool {
    match lookup {
        EndpointLookup::Found(endpoint) => match endpoint.rights.host {
            HostCheck::Checked => true,
            HostCheck::ExceptProxies => !is_proxy(),
            HostCheck::Never => false,
        },
        EndpointLookup::WrongMethod(_) | EndpointLookup::UnknownPath => true,
    }
}

/// The key that a request presents, if any. A repeated header or another scheme is an unknown key.
fn presented_key(headers: &HeaderMap) -> Result<Option<&[u8]>, AuthError> {
    let single = |name: &HeaderName| {
        let mut lines = headers.get_all(name).iter();
        let line = lines.next();
        let is_repeated = lines.next().is_some();
        if is_repeated {
            return Err(AuthError::UnknownKey);
        }
        Ok(line.map(HeaderValue::as_bytes))
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
        _ => Err(AuthError::UnknownKey),
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let unauthorized = |code, detail| Self::new(StatusCode::UNAUTHORIZED, code, detail);
        let forbidden = |code, detail| Self::new(StatusCode::FORBIDDEN, code, detail);
        let detail = error.to_string();
        match error {
            AuthError::NoKey => {
                let detail = "missing API key: send `Authorization: Bearer KEY`; `catraca keygen` \
                              makes one";
                unauthorized("no-key", detail.to_owned())
            }
            AuthError::UnknownKey => unauthorized("unknown-key", detail),
            AuthError::RoleTooLow(_) => forbidden("role-too-low", detail),
            AuthError::NamespaceBound | AuthError::OtherNamespace(_) => {
                forbidden("namespace-bound-key", detail)
            }
            AuthError::FixedAttribute(_) => forbidden("fixed-attribute", detail),
        }
    }
}

/// 401 with the challenge that says how to send a key.
fn unauthorized_response(error: AuthError) -> Box<HttpResponse> {
    let challenge = match error {
        AuthError::NoKey => "Bearer realm=\"catraca\"",
        _ => "Bearer realm=\"catraca\", error=\"invalid_token\"",
    };
    let mut response = Problem::from(error).to_response();
    let challenge = HeaderValue::from_static(challenge);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    Box::new(response)
}

/// 405 with the methods of the path in `Allow`; 204 for OPTIONS, which asks for them.
fn wrong_method_response(method: &Method, path: &str, allow: &str) -> HttpResponse {
    let mut response = if method == Method::OPTIONS {
        let mut response = Response::new(full_body(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    } else {
        wrong_method(method, path).to_response()
    };
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}
