//! Authentication: API keys, the role that each call needs, and the caller that results.
//!
//! Without keys every program on this machine may call everything, but a page of another site may
//! not: `Host` and `Origin` are checked. With keys a request belongs to its key, which names the
//! namespace and may fix attributes. Answers never distinguish an unknown key from a malformed one,
//! and only the hashes of keys are kept.

pub mod hash;
mod hosts;
mod keys;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use catraca::Subject;
use catraca::core::request::DEFAULT_NAMESPACE;
use http_body_util::Full;

use super::problem::{Answer, Problem};
use super::roles::{self, Access, Found, HostCheck, Reach, Role, Row};
use super::router;

use keys::Keys;
pub use keys::name as plain_name;

/// Where a proxy puts its own key when `Authorization` is that of the request it asks about.
const OWN_HEADER: HeaderName = HeaderName::from_static("catraca-key");

/// The name of everybody while there are no keys.
const ANYONE: &str = "local";

/// Lets requests in.
pub struct Guard {
    keys: Keys,
    hosts: Vec<String>,
    metrics_open: bool,
    /// Who everybody is while there are no keys, and on open calls.
    anyone: Arc<Caller>,
}

/// Whoever made a request, as their key says.
#[derive(Debug)]
pub struct Caller {
    /// The key's name, which is what the audit says.
    name: String,
    role: Role,
    namespace: Option<String>,
    /// Attributes that are this caller's, whatever they say.
    fix: Vec<(String, String)>,
}

impl Guard {
    /// The guard of a catalog: its keys, and the names by which operators may call this server.
    pub fn read(catalog: &catraca::Catalog, hosts: Vec<String>) -> anyhow::Result<Self> {
        let section = catalog.settings.sections.get("auth");
        let (keys, metrics_open) = (Keys::read(section)?, keys::metrics_open(section)?);
        let name = ANYONE.to_owned();
        let anyone = Caller { name, role: Role::Admin, namespace: None, fix: Vec::new() };
        Ok(Self { keys, hosts, metrics_open, anyone: Arc::new(anyone) })
    }

    /// Whether callers can be told apart.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether the sender of these headers may see details: it has a key, or the server has no keys
    /// and the call came by a name of this server.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        if self.keys.is_empty() {
            return hosts::check(headers, &self.hosts).is_ok();
        }
        let given = key(headers).ok().flatten();
        given.is_some_and(|given| self.keys.find(given).is_some())
    }

    /// Who calls, if they may; else the answer that says why not. `is_proxy` says whether the
    /// request comes from a trusted proxy.
    pub fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        is_proxy: impl Fn() -> bool,
    ) -> Result<Arc<Caller>, Box<Answer>> {
        let found = roles::find(method.as_str(), path);
        if self.keys.is_empty() && checks_host(&found, is_proxy) {
            let checked = hosts::check(headers, &self.hosts);
            checked.map_err(|problem| Box::new(problem.answer()))?;
        }
        let open = match found {
            Found::Row(row) if row.access == Access::Metrics => self.metrics_open,
            Found::Row(row) => row.access == Access::Open,
            _ => false,
        };
        if open {
            return Ok(Arc::clone(&self.anyone));
        }
        let caller = self.caller(headers)?;
        match found {
            Found::Row(row) => {
                self.refuse(row, &caller, headers).map_err(|problem| Box::new(problem.answer()))?;
                Ok(caller)
            }
            Found::OtherMethod(allow) => Err(Box::new(other_method(method, path, &allow))),
            Found::Nothing => Err(Box::new(router::unknown_call(path).answer())),
        }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Box<Answer>> {
        if self.keys.is_empty() {
            return Ok(Arc::clone(&self.anyone));
        }
        let given = key(headers).map_err(|()| unknown_key())?.ok_or_else(no_key)?;
        Ok(self.keys.find(given).ok_or_else(unknown_key)?)
    }

    fn refuse(&self, row: &Row, caller: &Caller, headers: &HeaderMap) -> Result<(), Problem> {
        let least = match row.access {
            Access::Least(least) => least,
            Access::Open | Access::Metrics => Role::Read,
        };
        if caller.role < least {
            return Err(forbidden(
                "role-too-low",
                format!("this call needs a key of role {}", name(least)),
            ));
        }
        if row.reach == Reach::Catalog && caller.namespace.is_some() {
            let detail = "this call sees all namespaces, and this key is bound to one; use a key \
                          without `namespace`";
            return Err(forbidden("namespace-bound-key", detail));
        }
        // Without keys it was checked before anything else.
        if least == Role::Admin && self.has_keys() {
            return hosts::check(headers, &self.hosts);
        }
        Ok(())
    }
}

impl Caller {
    /// The name of the caller's key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the caller may do, in one word.
    pub fn role(&self) -> &'static str {
        name(self.role)
    }

    /// The namespace in which this caller's keys are counted.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The one tenant whose locks this caller may touch, if the key fixes one; another is refused.
    pub fn tenant(&self, stated: Option<&str>) -> Result<Option<String>, Problem> {
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

    /// The subject with what the key fixes; whoever says otherwise is refused.
    pub fn subject<'a>(&'a self, mut subject: Subject<'a>) -> Result<Subject<'a>, Problem> {
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

/// Whether `Host` and `Origin` of a request without a key are checked, also where there is no call.
fn checks_host(found: &Found, is_proxy: impl Fn() -> bool) -> bool {
    match found {
        Found::Row(row) => match row.host {
            HostCheck::Checked => true,
            HostCheck::ExceptProxies => !is_proxy(),
            HostCheck::Never => false,
        },
        Found::OtherMethod(_) | Found::Nothing => true,
    }
}

/// The key of a request, if there is one; more than one, or one of another scheme, is none of ours.
fn key(headers: &HeaderMap) -> Result<Option<&[u8]>, ()> {
    let single = |name: &HeaderName| {
        let mut lines = headers.get_all(name).iter();
        let line = lines.next();
        if lines.next().is_some() { Err(()) } else { Ok(line.map(HeaderValue::as_bytes)) }
    };
    if let Some(own) = single(&OWN_HEADER)? {
        return Ok(Some(own));
    }
    let Some(line) = single(&header::AUTHORIZATION)? else { return Ok(None) };
    match line.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            Ok(Some(key.trim_ascii()))
        }
        _ => Err(()),
    }
}

fn name(role: Role) -> &'static str {
    let named = roles::ROLES.iter().find(|(_, other)| *other == role);
    named.map_or("admin", |(name, _)| name)
}

fn forbidden(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, code, detail)
}

fn no_key() -> Answer {
    let detail = "send a key: `Authorization: Bearer KEY`; `catraca keygen` makes one";
    unauthorized("no-key", detail, "Bearer realm=\"catraca\"")
}

fn unknown_key() -> Answer {
    let detail = "this is no key of ours; `[[auth.key]]` lists the hashes of those that are";
    unauthorized("unknown-key", detail, "Bearer realm=\"catraca\", error=\"invalid_token\"")
}

fn unauthorized(code: &'static str, detail: &str, challenge: &'static str) -> Answer {
    let mut answer = Problem::new(StatusCode::UNAUTHORIZED, code, detail).answer();
    let challenge = HeaderValue::from_static(challenge);
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    answer
}

/// What a path takes instead is in `Allow`; OPTIONS asks for just that.
fn other_method(method: &Method, path: &str, allow: &str) -> Answer {
    let mut answer = if method == Method::OPTIONS {
        let mut answer = Response::new(Full::new(Bytes::new()));
        *answer.status_mut() = StatusCode::NO_CONTENT;
        answer
    } else {
        router::wrong_method(method, path).answer()
    };
    if let Ok(allow) = HeaderValue::from_str(allow) {
        answer.headers_mut().insert(header::ALLOW, allow);
    }
    answer
}
