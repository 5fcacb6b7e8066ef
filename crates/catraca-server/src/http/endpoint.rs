//! An endpoint: one method of one path, with its rights, handler, body and documentation.
//!
//! `table` lists all of them. Requests are found, admitted, read and handled by these values, and
//! the OpenAPI document is built from them. Clients name the paths that they call, and the reader
//! of authorize calls the beginning of theirs.

use std::pin::Pin;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::bodies::problem::{HttpResponse, Problem};
use super::request::ApiRequest;
pub use crate::auth::role::{ROLES, Role};

/// The response to a request, or the problem to send instead.
pub type ApiResult = Result<HttpResponse, Problem>;
/// The future of a handler. It is boxed: one allocation costs less than a large future in every
/// request.
pub type ApiFuture<'a> = Pin<Box<dyn Future<Output = ApiResult> + Send + 'a>>;
/// Generates the schema of a type.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// The method of endpoints that accept every method except CONNECT.
pub const ANY_METHOD: &str = "ANY";
/// The methods that `Allow` and the OpenAPI document list for `ANY_METHOD`.
pub const LISTED_METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// One method of one path.
pub struct Endpoint {
    /// The method, or `ANY_METHOD`. GET includes HEAD.
    pub method: &'static str,
    /// The path; `{x}` is any one segment, `{*x}` the rest of the path, which may be empty.
    pub path: &'static str,
    /// Who may call it.
    pub rights: Rights,
    /// Handles a request that was admitted, with its body.
    pub handler: for<'a> fn(&'a ApiRequest) -> ApiFuture<'a>,
    /// The body of a request.
    pub body: RequestBody,
    /// What the OpenAPI document says about it.
    pub docs: EndpointDocs,
}

/// The result of a lookup in the table.
pub enum EndpointLookup {
    /// The endpoint of the request.
    Found(&'static Endpoint),
    /// The path exists, but not with this method; holds the value for `Allow`.
    WrongMethod(String),
    /// The path does not exist.
    UnknownPath,
}

/// Who may call an endpoint, what it can see, and when `Host` and `Origin` are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Who may call it.
    pub access: Access,
    /// Which namespaces it can see.
    pub reach: Reach,
    /// When its `Host` and `Origin` are checked.
    pub host: HostCheck,
}

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every client, also without a key.
    Open,
    /// Keys of any role; every client with `[auth] metrics = "open"`.
    Metrics,
    /// Keys of a role that includes this one.
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
    /// For endpoints of operators, and for every request while there are no keys.
    Checked,
    /// While there are no keys, except from trusted proxies, which send their client's `Host`.
    ExceptProxies,
    /// Never: load balancers probe under any name.
    Never,
}

/// The body of a request.
pub enum RequestBody {
    /// It is not read.
    Empty,
    /// It must be sent.
    Required(SchemaFn),
    /// It may be left out.
    Optional(SchemaFn),
}

/// The documentation of an endpoint.
pub struct EndpointDocs {
    /// The `operationId`.
    pub name: &'static str,
    /// The group of the document to which it belongs.
    pub tag: OperationTag,
    /// One line, without a full stop.
    pub summary: &'static str,
    /// Further sentences; may be empty.
    pub description: &'static str,
    /// The parameters of its query.
    pub query: &'static [QueryParameter],
    /// Its responses other than errors.
    pub responses: &'static [ResponseSpec],
    /// Error codes, in groups, besides those of authentication, the connection and the body.
    pub error_codes: &'static [&'static [&'static str]],
}

/// The tag of an endpoint; the document lists tags in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationTag {
    /// Checks, settles, credits and authorize calls.
    Decide,
    /// States of buckets.
    States,
    /// Locks and slots.
    Locks,
    /// Policies, their modes, facts, and reload.
    Catalog,
    /// Blocks, the two lists, and reset.
    BlocksAndLists,
    /// Totals, the audit and the live feed.
    Reports,
    /// Export and erasure.
    Privacy,
    /// Health, metrics and documentation.
    Server,
}

/// A parameter of the query.
pub struct QueryParameter {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Its type, with an example.
    pub kind: ParameterType,
}

/// The type of a query parameter, with an example.
pub enum ParameterType {
    /// A text; without an example if it is empty.
    Text(&'static str),
    /// A whole number.
    Number(i64),
    /// The number of rows of a page.
    PageSize,
    /// An instant in RFC 3339.
    Instant,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A response other than an error: a success or a denial.
pub struct ResponseSpec {
    /// The status, or a range such as `4XX`.
    pub status: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// The media type and the schema of the body; `None` if it is empty.
    pub body: Option<(&'static str, SchemaFn)>,
    /// Names of headers; `openapi/build/responses` describes them.
    pub headers: &'static [&'static str],
}

impl Endpoint {
    /// Whether the endpoint accepts a method; GET includes HEAD.
    pub fn accepts(&self, method: &str) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        match self.method {
            // A success would turn the connection into a tunnel.
            ANY_METHOD => method != "CONNECT",
            own => own == method,
        }
    }

    /// Whether an unknown query parameter is refused: not where proxies append the query of their
    /// client, or load balancers and scrapers one of their own.
    pub fn checks_query(&self) -> bool {
        matches!(self.rights.access, Access::Least(_)) && self.rights.host == HostCheck::Checked
    }

    /// Compares segment by segment: nothing is decoded, and `{x}` matches no empty segment.
    pub fn matches_path(&self, path: &str) -> bool {
        if self.path == path {
            return true;
        }
        if !self.path.contains('{') {
            return false;
        }
        let mut wanted = self.path.split('/');
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

    /// The path as OpenAPI writes it, which has no parameters with slashes.
    pub fn template(&self) -> String {
        self.path.replace("{*", "{")
    }
}

impl Rights {
    /// Sees only the namespace of its key.
    pub const fn namespace(least: Role) -> Self {
        Self { reach: Reach::Namespace, ..Self::catalog(least) }
    }

    /// Sees all namespaces.
    pub const fn catalog(least: Role) -> Self {
        let access = Access::Least(least);
        Self { access, reach: Reach::Catalog, host: HostCheck::Checked }
    }

    /// Needs no key.
    pub const fn open() -> Self {
        Self { access: Access::Open, ..Self::catalog(Role::Read) }
    }

    /// Needs a key of any role, or none with `[auth] metrics = "open"`.
    pub const fn metrics() -> Self {
        Self { access: Access::Metrics, ..Self::open() }
    }

    /// Called by proxies on behalf of their clients.
    pub const fn for_proxies(self) -> Self {
        Self { host: HostCheck::ExceptProxies, ..self }
    }

    /// Called by load balancers, under any name.
    pub const fn for_any_host(self) -> Self {
        Self { host: HostCheck::Never, ..self }
    }
}

/// A 200 with a JSON body.
pub const fn ok_json(schema: SchemaFn) -> ResponseSpec {
    ResponseSpec {
        status: "200",
        description: "Done.",
        body: Some(("application/json", schema)),
        headers: &[],
    }
}

/// The schema of `T`, as a reference to its definition.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A list of at most `MAX` objects.
pub fn list_of<T: JsonSchema, const MAX: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "type": "array", "items": one, "maxItems": MAX })
}

/// One object, or a list of them.
pub fn one_or_many<T: JsonSchema, const MAX: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({
        "oneOf": [one.clone(), { "type": "array", "items": one, "maxItems": MAX }],
    })
}
