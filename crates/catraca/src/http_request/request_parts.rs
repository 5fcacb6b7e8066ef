//! The parts of an HTTP request that routes read, as far as a front end has them.

use catraca_core::json_path::JsonPath;
use http::HeaderMap;

/// An HTTP request, as far as a front end has it.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    pub(super) target: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: RequestBody<'a>,
    pub(super) claims: Option<&'a Claims>,
    pub(super) certificate: Option<&'a ClientCertificate>,
}

/// The claims of a token that was verified: a JSON object. Verify a token before you make this of
/// it. The tower layer takes it from the extensions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims(pub serde_json::Value);

/// The certificate that a client has authenticated with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The name of its subject (RFC 4514).
    pub subject: String,
    /// The SHA-256 of the certificate, in lower-case hexadecimal digits.
    pub fingerprint: String,
    /// Its subject alternative names, in their order.
    pub alternative_names: Vec<String>,
}

/// The body of a request, as far as a front end has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody<'a> {
    /// The front end does not read bodies. A route that reads them refuses the request.
    Unread,
    /// The whole body. The front end bounds its length.
    Whole(&'a [u8]),
    /// A body that was not collected, or is longer than the bound of the front end. A route that
    /// reads its fields refuses the request; its length still counts.
    Uncollected {
        /// The number of bytes that the head of the request announces.
        length: u64,
    },
}

impl<'a> RequestParts<'a> {
    /// The head of a request. `target` is the path with the query.
    pub const fn new(target: &'a str, headers: &'a HeaderMap) -> Self {
        Self { target, headers, body: RequestBody::Unread, claims: None, certificate: None }
    }

    /// The same request with the claims of its verified token.
    #[must_use]
    pub const fn with_claims(self, claims: Option<&'a Claims>) -> Self {
        Self { claims, ..self }
    }

    /// The same request with the certificate of its client.
    #[must_use]
    pub const fn with_certificate(self, certificate: Option<&'a ClientCertificate>) -> Self {
        Self { certificate, ..self }
    }

    /// The same request with its body.
    #[must_use]
    pub const fn with_body(self, body: RequestBody<'a>) -> Self {
        Self { body, ..self }
    }

    /// The claim with this name, or at this path.
    pub(super) fn claim(&self, name: &str) -> Option<&'a serde_json::Value> {
        let Claims(claims) = self.claims?;
        let named = claims.get(name).filter(|value| !value.is_null());
        named.or_else(|| JsonPath::parse(name)?.find(claims))
    }

    /// The query without its question mark; empty if there is none.
    pub(super) fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}
