//! A request that was admitted: its path parameters, query and body, and who sent it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use catraca::core::address::forwarded::{ClientAddress, find_client};
use catraca::core::located::names::is_name;
use catraca::core::request::validate_storable;
use catraca::http_request::header_lines;
use catraca::records::Operator;
use catraca::{App, Locks};
use hyper::http::HeaderMap;
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::bodies::problem::{Problem, bad_path};
use super::bodies::wire;
use super::connection::HttpConnection;
use crate::auth::{AuthError, Caller, Role};
use crate::context::ServerContext;
use crate::listener::Connection;
use crate::observe::traces::RequestSpan;

/// The most characters of a client's text in an error message.
const QUOTED_CHARS_MAX: usize = 500;

/// A request, with what its handler needs.
pub struct ApiRequest {
    /// Its sender.
    pub caller: Arc<Caller>,
    /// The path of its endpoint, such as `/v1/locks/{fence}`.
    pub route: &'static str,
    /// The method, the URI and the headers.
    pub head: Parts,
    /// The body; empty if the endpoint takes none.
    pub body: Bytes,
    /// The trace span of the request.
    pub span: RequestSpan,
    http: Arc<HttpConnection>,
    /// Both are empty, and allocate nothing, for most requests.
    path_params: Vec<String>,
    query: Vec<(String, String)>,
}

impl ApiRequest {
    /// A request to the endpoint of `route`, without its body.
    pub fn new(
        http: Arc<HttpConnection>,
        caller: Arc<Caller>,
        route: &'static str,
        head: Parts,
        span: RequestSpan,
    ) -> Result<Self, Problem> {
        let path_params = path_params(route, head.uri.path())?;
        let query = head.uri.query().unwrap_or_default().as_bytes();
        let query = form_urlencoded::parse(query).into_owned().collect();
        Ok(Self { caller, route, head, body: Bytes::new(), span, http, path_params, query })
    }

    /// Every operation that a handler may call.
    pub fn app(&self) -> &App {
        &self.http.context.app
    }

    /// What all front ends share.
    pub fn context(&self) -> &ServerContext {
        &self.http.context
    }

    /// The connection on which it arrived.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.http.connection
    }

    /// What belongs to all requests of its connection.
    pub fn http(&self) -> &HttpConnection {
        &self.http
    }

    /// Locks and slots.
    pub fn locks(&self) -> &Arc<Locks> {
        self.app().locks()
    }

    /// The namespace of the caller's key.
    pub fn namespace(&self) -> &str {
        self.caller.namespace()
    }

    /// The namespace of an operator's act: that of the key, or the stated one. A key that is bound
    /// to none must state one as soon as there are several.
    pub async fn act_namespace(&self, stated: Option<&str>) -> Result<String, Problem> {
        self.act_namespace_among(stated, Vec::new()).await
    }

    /// The namespace of an operator's act on locks: as for other acts, but one whose keys were
    /// removed is known as long as this process has used it for locks.
    pub async fn lock_act_namespace(&self, stated: Option<&str>) -> Result<String, Problem> {
        self.act_namespace_among(stated, self.used_lock_namespaces().collect()).await
    }

    /// The namespace of an act, of those of keys, those in the records and `others`.
    async fn act_namespace_among(
        &self,
        stated: Option<&str>,
        others: Vec<String>,
    ) -> Result<String, Problem> {
        let stated = self.caller.visible_namespace(stated)?;
        if let Some(own) = self.caller.bound_namespace() {
            return Ok(own.to_owned());
        }
        let config = self.context().reloadable.load_full();
        let configured = config.process.namespaces();
        if stated.is_none() && !config.guard.has_keys() && configured.is_empty() {
            // Without keys and without another namespace of the proxy, all requests are in the
            // default namespace.
            return Ok(self.namespace().to_owned());
        }
        let mut known = configured;
        known.extend(others);
        Ok(self.app().act_namespace(stated, known).await?)
    }

    /// The namespace in which state is shown: as for an act, but a service, which checks, sees its
    /// own.
    pub async fn shown_namespace(&self, stated: Option<&str>) -> Result<String, Problem> {
        if self.caller.role() != Role::Check {
            return self.act_namespace(stated).await;
        }
        self.caller.visible_namespace(stated)?;
        let own = self.namespace();
        match stated.filter(|stated| *stated != own) {
            Some(_) => Err(AuthError::OtherNamespace(own.to_owned()).into()),
            None => Ok(own.to_owned()),
        }
    }

    /// The namespaces that an operator's list of locks covers: that of the key, the stated one, or
    /// all that keys and the proxy have or that this process has used for locks. The records are
    /// not read for it: locks work without them.
    pub async fn lock_namespaces(&self, stated: Option<&str>) -> Result<Vec<String>, Problem> {
        if let Some(one) = self.caller.visible_namespace(stated)? {
            return Ok(vec![self.lock_act_namespace(Some(one)).await?]);
        }
        let mut all: BTreeSet<String> =
            self.context().reloadable.load().process.namespaces().into_iter().collect();
        all.insert(self.namespace().to_owned());
        all.extend(self.used_lock_namespaces());
        Ok(all.into_iter().collect())
    }

    /// The namespaces that this process has used for locks, without that of the self-test, whose
    /// name no key can have.
    fn used_lock_namespaces(&self) -> impl Iterator<Item = String> + use<> {
        let all = self.locks().namespaces().into_iter();
        all.filter(|namespace| is_name(namespace)).map(String::from)
    }

    /// The namespace of a list entry or a fact: that of the key, or the stated one; none if it is
    /// for all namespaces.
    pub async fn entry_namespace(&self, stated: Option<&str>) -> Result<Option<String>, Problem> {
        match self.caller.visible_namespace(stated)? {
            None => Ok(None),
            one => self.act_namespace(one).await.map(Some),
        }
    }

    /// The operator, by the name of the key, and the reason given.
    pub fn operator<'a>(&'a self, why: Option<&'a str>) -> Operator<'a> {
        Operator { name: self.caller.name(), why }
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The path parameter at this index, from zero; empty if the route has fewer.
    pub fn path_param(&self, index: usize) -> &str {
        self.path_params.get(index).map_or("", String::as_str)
    }

    /// Parses the body.
    pub fn json_body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        wire::read(&self.body)
    }

    /// Refuses a query parameter that the endpoint does not have: a `dry_run` that is ignored would
    /// change something.
    pub fn check_query(&self, known: impl Iterator<Item = &'static str>) -> Result<(), Problem> {
        if self.query.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> = known.collect();
        match self.query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(unknown_parameter(name, &known)),
            None => Ok(()),
        }
    }

    /// The values of the `known` query parameters, in that order. A parameter that is unknown or
    /// sent twice is refused.
    pub fn query_params<const N: usize>(
        &self,
        known: [&str; N],
    ) -> Result<[Option<&str>; N], Problem> {
        // The parser of the query takes a broken escape literally, and replaces what is not UTF-8.
        if self.head.uri.query().is_some_and(|query| decode_escapes(query).is_none()) {
            let detail = "an escape in the query has not two hexadecimal digits, or the query is \
                          not UTF-8 after percent-decoding";
            return Err(Problem::bad("bad-query", detail));
        }
        let mut found = [None; N];
        for (name, value) in &self.query {
            let index = known.iter().position(|one| one == name);
            let index = index.ok_or_else(|| unknown_parameter(name, &known))?;
            validate_storable(format_args!("`{name}` in the query"), value)?;
            if found[index].replace(value.as_str()).is_some() {
                let detail = format!("`{name}` is sent twice in the query");
                return Err(Problem::bad("bad-query", detail));
            }
        }
        Ok(found)
    }

    /// The address at the other end of the connection.
    pub fn peer(&self) -> IpAddr {
        self.connection().peer
    }

    /// The client's address, from the connection and the headers of trusted proxies.
    pub fn client(&self) -> ClientAddress {
        let config = self.context().reloadable.load();
        let source = &config.process.server.client_address;
        let lines = source.header().map(|name| header_lines(self.headers(), name));
        find_client(
            self.peer(),
            &lines.unwrap_or_default(),
            source,
            &config.network.trusted_proxies,
        )
    }
}

/// The decoded values of the parameters in `route`. The rest of a path (`{*x}`) is not one of them:
/// its handler reads it from the URI, because a decoded slash would look like a separator.
fn path_params(route: &str, path: &str) -> Result<Vec<String>, Problem> {
    if !route.contains('{') {
        return Ok(Vec::new());
    }
    let pairs = route.split('/').zip(path.split('/'));
    let given = pairs.filter(|(wanted, _)| wanted.starts_with('{') && !wanted.starts_with("{*"));
    given
        .map(|(_, value)| decode_escapes(value).map(Cow::into_owned).ok_or_else(bad_path))
        .collect()
}

/// The decoded text; none if an escape has not two hexadecimal digits, or if it is not UTF-8.
fn decode_escapes(text: &str) -> Option<Cow<'_, str>> {
    let is_escape =
        |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// 400: the call has no such query parameter.
fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    // The name comes from the client and may be very long.
    let name: String = name.chars().take(QUOTED_CHARS_MAX).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Problem::bad("bad-query", format!("unknown query parameter `{name}`; this call takes: {known}"))
}
