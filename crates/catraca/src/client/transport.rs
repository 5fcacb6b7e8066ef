//! Sends a call on a connection of the pool, and reads the whole answer.
//!
//! A request that was not written goes to another connection at once. After that, only a call that
//! is safe to repeat is sent again, with a growing, random delay, until the deadline of its caller.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catraca_core::decision::Decision;
use catraca_core::time::Time;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::client_error::ClientError;
use super::pool::{ConnectionPermit, ConnectionPool, HttpSender};
use super::server_tls::ServerTls;
use super::server_url::ServerUrl;
use crate::clock::{Clock, SystemClock};
use crate::engine::random_bytes;
use crate::json::{DecisionBody, read_json};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// How many times a call that is safe to repeat is sent.
const ATTEMPTS_MAX: u32 = 3;
/// The longest delay before the second attempt; it doubles for each further one.
const BACKOFF: Duration = Duration::from_millis(20);

/// Whether a call may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// A second execution has the result of the first one.
    Safe,
    /// Only if it was not written to the connection.
    IfUnwritten,
}

/// One call of the API.
pub(super) struct HttpCall {
    method: Method,
    path: &'static str,
    body: Bytes,
    repeat: Repeat,
    /// Whether the server waits on purpose before it answers.
    waits: bool,
}

/// The answer to a call.
pub(super) struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why a call has no answer, and whether the server may have executed it.
struct SendFailure {
    error: ClientError,
    is_written: bool,
}

/// The connections to one server, and how requests are made.
pub(super) struct Transport {
    pub pool: ConnectionPool,
    url: ServerUrl,
    server: Arc<str>,
    tls: Option<ServerTls>,
    headers: HeaderMap,
    check_uri: Uri,
    clock: SystemClock,
}

/// The members of a problem+json that errors show.
#[derive(Deserialize)]
pub(super) struct ProblemText {
    pub status: u16,
    pub code: String,
    pub detail: String,
}

impl HttpCall {
    pub fn post(path: &'static str, body: Bytes, repeat: Repeat) -> Self {
        Self { method: Method::POST, path, body, repeat, waits: false }
    }

    /// The server may wait before it answers, so the call must not occupy a connection of checks.
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    pub fn get(path: &'static str) -> Self {
        let body = Bytes::new();
        Self { method: Method::GET, path, body, repeat: Repeat::Safe, waits: false }
    }
}

impl HttpAnswer {
    /// The body of a 200; the error of any other status.
    pub fn read<'a, T: Deserialize<'a>>(&'a self, transport: &Transport) -> Result<T, ClientError> {
        if self.status != StatusCode::OK {
            return Err(transport.error_of(self));
        }
        self.read_as(transport)
    }

    /// The body of an answer with any status.
    pub fn read_as<'a, T: Deserialize<'a>>(
        &'a self,
        transport: &Transport,
    ) -> Result<T, ClientError> {
        // One look at the whole text costs less than one at each string in it.
        let text = str::from_utf8(&self.body);
        let text = text.map_err(|error| transport.incompatible(&error.to_string()))?;
        let read = read_json(text);
        read.map_err(|error| transport.incompatible(&error.to_string()))
    }

    /// The decision that the answer to a check or a peek contains.
    pub fn read_decision(&self, transport: &Transport) -> Result<Decision, ClientError> {
        let body: DecisionBody<'_> = self.read(transport)?;
        Ok(body.into_decision(transport.now()))
    }
}

impl Transport {
    pub fn new(
        url: ServerUrl,
        tls: Option<ServerTls>,
        headers: HeaderMap,
        pool: ConnectionPool,
    ) -> Result<Self, http::Error> {
        let check_uri = Uri::try_from(url.path("/v1/check"))?;
        let server = url.to_text().into();
        let clock = SystemClock::new();
        Ok(Self { pool, url, server, tls, headers, check_uri, clock })
    }

    /// Whether calls carry an API key.
    pub fn has_key(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
    }

    /// The URL of the server, for messages.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The current instant, by the clock of this process.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends one check. It is never sent twice.
    pub async fn send_check(
        &self,
        body: Bytes,
        permit: &ConnectionPermit,
        now: Instant,
    ) -> Result<HttpAnswer, ClientError> {
        let request = self.request(Method::POST, self.check_uri.clone(), body);
        self.send(request, permit, now).await.map_err(|failure| failure.error)
    }

    /// Makes a call once.
    pub async fn call_once(
        &self,
        call: &HttpCall,
        permit: &ConnectionPermit,
    ) -> Result<HttpAnswer, ClientError> {
        self.attempt(call, permit).await.map_err(|failure| failure.error)
    }

    /// Makes a call, repeatedly if it is safe. It ends with the deadline of its caller.
    pub async fn call(&self, call: &HttpCall) -> Result<HttpAnswer, ClientError> {
        let mut attempts = 1;
        loop {
            let permit = match call.waits {
                true => self.pool.wait_permit().await,
                false => self.pool.permit().await,
            };
            let sent = self.attempt(call, &permit).await;
            drop(permit);
            let is_last = attempts == ATTEMPTS_MAX;
            match sent {
                Ok(answer) if is_last || !is_transient(answer.status) => return Ok(answer),
                // A transient status says that the call was not executed, or not completely.
                Ok(answer) if call.repeat == Repeat::IfUnwritten => return Ok(answer),
                Err(failure) if is_last || !failure.may_repeat(call.repeat) => {
                    return Err(failure.error);
                }
                Ok(_) | Err(_) => sleep(backoff(attempts)).await,
            }
            attempts += 1;
        }
    }

    async fn attempt(
        &self,
        call: &HttpCall,
        permit: &ConnectionPermit,
    ) -> Result<HttpAnswer, SendFailure> {
        let uri = Uri::try_from(self.url.path(call.path));
        let uri = uri.map_err(|error| SendFailure {
            error: self.incompatible(&error.to_string()),
            is_written: false,
        })?;
        let request = self.request(call.method.clone(), uri, call.body.clone());
        self.send(request, permit, Instant::now()).await
    }

    /// Sends a request on an idle connection, or on a new one.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        _permit: &ConnectionPermit,
        now: Instant,
    ) -> Result<HttpAnswer, SendFailure> {
        while let Some(mut sender) = self.pool.take(now) {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return self.read_answer(response, sender).await,
                Err(mut error) => match error.take_message() {
                    // The server had closed the idle connection: nothing was written to it.
                    Some(unwritten) => request = unwritten,
                    None => return Err(self.interruption(error.error())),
                },
            }
        }
        // Boxed: a handshake is large, and would make every call larger.
        let connected = Box::pin(self.connect()).await;
        let mut sender = connected.map_err(|error| self.unreachable(&error))?;
        match sender.try_send_request(request).await {
            Ok(response) => self.read_answer(response, sender).await,
            Err(mut error) => Err(match error.take_message() {
                Some(_) => self.unreachable(error.error()),
                None => self.interruption(error.error()),
            }),
        }
    }

    async fn read_answer(
        &self,
        response: Response<Incoming>,
        sender: HttpSender,
    ) -> Result<HttpAnswer, SendFailure> {
        let (head, body) = response.into_parts();
        let body = read_body(body).await.map_err(|error| self.interruption(&*error))?;
        self.pool.give_back(sender);
        Ok(HttpAnswer { status: head.status, headers: head.headers, body })
    }

    async fn connect(&self) -> io::Result<HttpSender> {
        let stream = TcpStream::connect((self.url.host.as_str(), self.url.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            Some(tls) => handshake(tls.handshake(stream).await?).await,
            None => handshake(stream).await,
        }
    }

    fn request(&self, method: Method, uri: Uri, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// The error of an answer that is not a 200.
    pub fn error_of(&self, answer: &HttpAnswer) -> ClientError {
        let status = answer.status.as_u16();
        match serde_json::from_slice::<ProblemText>(&answer.body) {
            Ok(problem) => self.error_of_problem(ProblemText { status, ..problem }),
            Err(_) if is_transient(answer.status) => self.error_of_problem(ProblemText {
                status,
                code: String::new(),
                detail: "a proxy before it answered, or it could not say why".to_owned(),
            }),
            Err(_) => self.incompatible(&format!("a {} without a reason", answer.status)),
        }
    }

    /// The error that a problem of the server means.
    pub fn error_of_problem(&self, problem: ProblemText) -> ClientError {
        let ProblemText { status, code, detail } = problem;
        match status {
            401 | 403 => ClientError::Unauthorized { code, detail },
            408 | 429 | 500.. => {
                let server = Arc::clone(&self.server);
                ClientError::Unavailable { server, status, code, detail }
            }
            _ => ClientError::Refused { status, code, detail },
        }
    }

    pub fn deadline_passed(&self, deadline: Duration) -> ClientError {
        ClientError::Deadline { server: Arc::clone(&self.server), deadline }
    }

    pub fn incompatible(&self, why: &str) -> ClientError {
        ClientError::Incompatible { server: Arc::clone(&self.server), why: why.to_owned() }
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> SendFailure {
        let server = Arc::clone(&self.server);
        let error = ClientError::Unreachable { server, why: with_cause(error) };
        SendFailure { error, is_written: false }
    }

    fn interruption(&self, error: &(dyn std::error::Error + 'static)) -> SendFailure {
        let why = with_cause(error);
        let error = ClientError::Interrupted { server: Arc::clone(&self.server), why };
        SendFailure { error, is_written: true }
    }
}

impl SendFailure {
    fn may_repeat(&self, repeat: Repeat) -> bool {
        !self.is_written || repeat == Repeat::Safe
    }
}

fn with_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Starts the task that moves the bytes of a connection.
async fn handshake<S>(stream: S) -> io::Result<HttpSender>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Ends with the connection; its errors also reach the sender and the body.
    tokio::spawn(connection);
    Ok(sender)
}

/// The whole body. One that arrives in one piece is not copied.
async fn read_body(body: Incoming) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let mut body = Limited::new(body, ANSWER_BYTES_MAX);
    let Some(frame) = body.frame().await else { return Ok(Bytes::new()) };
    // A frame without data has trailers, which are not read.
    let first = frame?.into_data().unwrap_or_default();
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = body.collect().await?.to_bytes();
    Ok(if rest.is_empty() { first } else { [first, rest].concat().into() })
}

/// Whether the server, or a proxy before it, could not execute the call now.
fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 429)
}

/// The delay after a failed attempt: half of it fixed, half random, so that callers that failed
/// together do not return together.
fn backoff(attempts: u32) -> Duration {
    let longest = BACKOFF * 2_u32.pow(attempts - 1);
    let random = u32::from(u16::from_le_bytes(random_bytes()));
    longest / 2 + longest / 2 * random / u32::from(u16::MAX)
}

/// The headers of every request.
pub(super) fn request_headers(
    url: &ServerUrl,
    key: Option<HeaderValue>,
    caller: HeaderValue,
) -> Result<HeaderMap, http::Error> {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::try_from(&url.authority)?);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        headers.insert(header::AUTHORIZATION, key);
    }
    headers.insert("catraca-caller", caller);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_half_of_each_is_random() {
        for attempts in 1..=3 {
            let longest = BACKOFF * 2_u32.pow(attempts - 1);
            let delays: Vec<Duration> = (0..100).map(|_| backoff(attempts)).collect();
            assert!(delays.iter().all(|delay| (longest / 2..=longest).contains(delay)));
            assert!(delays.iter().any(|delay| *delay != delays[0]));
        }
    }
}
