//! One request on a connection of HTTP/2 to an upstream.

use std::error::Error;
use std::sync::Arc;
use std::task::Context;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::http::{HeaderMap, Request, Response, Uri, Version, header};

use super::h2_upload::UploadHandle;
use super::idle_timer::IdleTimer;
use super::stream_pool::StreamLease;
use super::upload_body::UploadBody;
use super::upstream_connection::SendError;
use super::upstream_h2::H2Connection;

/// What a request has in HTTP/2 and not in HTTP/1.1.
#[derive(Clone)]
pub struct Origin {
    /// `https`, or `http` without TLS.
    pub scheme: Scheme,
    /// The host for requests that name none.
    pub authority: Authority,
}

/// One request on a connection of HTTP/2.
pub struct UpstreamStream {
    lease: StreamLease<H2Connection>,
    origin: Origin,
    /// Absent before the request is sent.
    upload: Option<Arc<UploadHandle>>,
    /// Waits for the head of the response.
    pub timer: IdleTimer,
}

impl UpstreamStream {
    /// A stream that has no request yet.
    pub fn new(lease: StreamLease<H2Connection>, origin: Origin) -> Self {
        Self { lease, origin, upload: None, timer: IdleTimer::default() }
    }

    /// Whether the upstream has not answered on this connection yet.
    pub fn is_new(&self) -> bool {
        !self.lease.connection.has_answered()
    }

    /// Wakes this task at the next part of the request's body: hyper reads it in another one.
    pub fn wake_at_next_part(&self, cx: &Context<'_>) {
        if let Some(upload) = &self.upload {
            upload.wake_at_next_part(cx);
        }
    }

    /// The connection gets no more requests.
    pub fn retire(&self) {
        self.lease.connection.retire();
    }

    /// Begins to send a request.
    pub fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + use<> {
        let (head, body) = request.into_parts();
        let (body, upload) = UploadHandle::new(body);
        let upload = Arc::new(upload);
        self.upload = Some(Arc::clone(&upload));
        let connection = Arc::clone(&self.lease.connection);
        let request = Request::from_parts(h2_head(&head, &self.origin), body);
        let response = connection.sender().try_send_request(request);
        async move {
            match response.await {
                Ok(response) => {
                    upload.on_head();
                    connection.on_answer();
                    Ok(response)
                }
                Err(error) => {
                    let is_unsent = error.message().is_some();
                    let error = error.into_error();
                    let refusal = StreamRefusal::of(&error);
                    // A reset concerns one request, everything else the whole connection.
                    if !refusal.is_reset {
                        connection.retire();
                    }
                    let is_unprocessed = is_unsent || refusal.is_unprocessed;
                    if let Some(body) = upload.take_back().filter(|_| is_unprocessed) {
                        return Err(SendError::Refused(Box::new(Request::from_parts(head, body))));
                    }
                    let is_first = refusal.is_reset || connection.note_break();
                    Err(SendError::Broken { error, is_first })
                }
            }
        }
    }
}

/// What an error says about its request.
struct StreamRefusal {
    /// The upstream has certainly not processed it.
    is_unprocessed: bool,
    /// One of the two sides has reset this request alone.
    is_reset: bool,
}

impl StreamRefusal {
    fn of(error: &hyper::Error) -> Self {
        let h2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
        let Some(h2) = h2 else { return Self { is_unprocessed: false, is_reset: false } };
        let is_refused = h2.is_reset() && h2.reason() == Some(h2::Reason::REFUSED_STREAM);
        // A `GOAWAY` reaches only the streams that come after the last one that is processed.
        let is_unprocessed = h2.is_remote() && (is_refused || h2.is_go_away());
        Self { is_unprocessed, is_reset: h2.is_reset() }
    }
}

/// The head of a request in HTTP/2. The other one stays, because the request may go to another
/// upstream.
fn h2_head(head: &Parts, origin: &Origin) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = head.method.clone();
    parts.version = Version::HTTP_2;
    parts.headers = head.headers.clone();
    for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE] {
        parts.headers.remove(name);
    }
    let mut uri = hyper::http::uri::Parts::default();
    uri.scheme = Some(origin.scheme.clone());
    uri.authority = Some(host(&head.headers).unwrap_or_else(|| origin.authority.clone()));
    let path = head.uri.path_and_query().cloned();
    uri.path_and_query = Some(path.unwrap_or(PathAndQuery::from_static("/")));
    parts.uri = Uri::from_parts(uri).unwrap_or_default();
    parts
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(header::HOST).filter(|host| !host.is_empty())?;
    Authority::try_from(host.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri_of(host: &str) -> String {
        let origin =
            Origin { scheme: Scheme::HTTP, authority: Authority::from_static("upstream:50051") };
        let request = Request::post("/a.B/C?d=1").header("host", host).header("te", "trailers");
        let request = request.header("transfer-encoding", "chunked");
        let (head, ()) = request.body(()).unwrap().into_parts();
        let head = h2_head(&head, &origin);
        let names: Vec<&str> = head.headers.keys().map(header::HeaderName::as_str).collect();
        assert_eq!(names, ["te"]);
        head.uri.to_string()
    }

    #[test]
    fn the_host_is_the_authority() {
        assert_eq!(uri_of("shop.example"), "http://shop.example/a.B/C?d=1");
        for unusable in ["", "[::1", "a:b:c"] {
            assert_eq!(uri_of(unusable), "http://upstream:50051/a.B/C?d=1");
        }
    }
}
