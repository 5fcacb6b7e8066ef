//! A request of the admin and lock APIs: its path parameters, query and body, and who sent it.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, HttpBody};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, Response};
use bytes::Bytes;
use catraca::core::address::forwarded::ClientAddress;
use catraca::core::request::validate_storable;
use serde::de::DeserializeOwned;

use super::authorize;
use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::problem::{Problem, bad_path};
use crate::http::bodies::{request_body, wire};
use crate::listener::Connection;

pub type ContextState = State<Arc<ServerContext>>;
pub type ConnectionExt = Extension<Arc<Connection>>;
pub type CallerExt = Extension<Arc<Caller>>;
pub type PathParams = Result<RawPathParams, RawPathParamsRejection>;
pub type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// The most characters of a client's text in an error message.
const QUOTED_CHARS_MAX: usize = 500;

/// A request of the admin or lock API, with what its handler needs.
pub struct ApiRequest {
    /// The engine, locks and records.
    pub context: Arc<ServerContext>,
    /// The connection on which it arrived.
    pub connection: Arc<Connection>,
    /// Its sender.
    pub caller: Arc<Caller>,
    /// The route that matched, such as `/v1/locks/{fence}`.
    pub route: Arc<str>,
    /// The body; empty if the call takes none.
    pub body: Bytes,
    headers: HeaderMap,
    path: Vec<String>,
    query: Vec<(String, String)>,
}

impl ApiRequest {
    /// Reads a request; its body only if the call takes one.
    pub async fn read(
        State(context): ContextState,
        Extension(connection): ConnectionExt,
        Extension(caller): CallerExt,
        path: PathParams,
        request: Request,
    ) -> Result<Self, Problem> {
        let path = path.map_err(|_| bad_path())?;
        let path = path.iter().map(|(_, value)| value.to_owned()).collect();
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query = form_urlencoded::parse(query).into_owned().collect();
        let takes_body = takes_body(&request);
        let (head, body) = request.into_parts();
        let body = match takes_body {
            true => request_body::read(&head.headers, body, &connection).await?,
            false => Bytes::new(),
        };
        let route = head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str).into();
        let headers = head.headers;
        Ok(Self { context, connection, caller, route, body, headers, path, query })
    }

    /// The path parameter at this index, from zero; empty if the route has fewer.
    pub fn path_param(&self, index: usize) -> &str {
        self.path.get(index).map_or("", String::as_str)
    }

    /// Parses the body.
    pub fn json_body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        wire::read(&self.body)
    }

    /// The values of the `known` query parameters, in that order. A parameter that is unknown or
    /// sent twice is refused.
    pub fn query_params<const N: usize>(
        &self,
        known: [&str; N],
    ) -> Result<[Option<&str>; N], Problem> {
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
        self.connection.peer
    }

    /// The client's address, from the connection or the headers of trusted proxies.
    pub fn client(&self) -> ClientAddress {
        authorize::resolve_client(&self.context, self.peer(), &self.headers)
    }
}

/// Whether the body is read. Those of DELETE and of a reload hold only a reason, and may be left
/// out.
fn takes_body(request: &Request) -> bool {
    let is_optional = match *request.method() {
        Method::GET | Method::HEAD => return false,
        Method::DELETE => true,
        _ => request.uri().path() == "/v1/config/reload",
    };
    !is_optional || request.body().size_hint().upper() != Some(0)
}

/// 400: the call has no such query parameter.
pub fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    // The name comes from the client and may be very long.
    let name: String = name.chars().take(QUOTED_CHARS_MAX).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Problem::bad("bad-query", format!("unknown query parameter `{name}`; this call takes: {known}"))
}
