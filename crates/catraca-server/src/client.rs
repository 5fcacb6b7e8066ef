//! The HTTP client behind the command-line verbs that call a server.
//!
//! Opens one connection per call: a command makes few calls, so a pool would not pay. Uses only
//! the public API, and never prints the API key.

mod error;
mod key;

use std::io;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use bytes::Bytes;
use catraca::client::{ClientBuildError, ServerTls, ServerUrl};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::http::{HeaderValue, Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::args::RemoteArgs;
use crate::render::eprint_line;

pub use error::ClientError;

/// The largest response body that is read.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// The longest silence in an event stream; the server sends a keep-alive more often than this.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// A client of one server.
pub struct Client {
    runtime: Runtime,
    url: ServerUrl,
    tls: Option<ServerTls>,
    key: Option<HeaderValue>,
    timeout: Duration,
}

/// A successful response.
pub struct Reply {
    /// The body as received.
    pub text: String,
    /// The body, parsed.
    pub json: Value,
}

impl Client {
    /// Makes a client of `--server`; connects only when a call is made.
    pub fn new(remote: &RemoteArgs) -> Result<Self> {
        let url = ServerUrl::parse(&remote.server).map_err(name_url_options)?;
        let tls = url.is_https.then(|| ServerTls::new(&url.host, remote.ca.as_deref()));
        let tls = tls.transpose();
        let tls = tls.context("--ca FILE names a PEM file with the trusted certificates")?;
        let key = key::read(remote.key_file.as_deref())?;
        if key.is_some() && url.is_plaintext() {
            eprint_line(format_args!(
                "catraca: the key goes to {} in clear; use https",
                url.to_text()
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, url, tls, key, timeout: remote.timeout })
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Result<Reply> {
        self.send(Method::GET, path, None)
    }

    /// Sends a POST request with a JSON body.
    pub fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.send(Method::POST, path, Some(body))
    }

    /// Sends one request and reads the whole response.
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply> {
        let call = ClientCall { method, path, server: &self.url };
        let work = async {
            let response = self.exchange(&call, body).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect().await;
            let body = body.map_err(|error| call.protocol_error(&*error))?.to_bytes();
            Ok::<_, ClientError>((status, body))
        };
        let done = self.runtime.block_on(async { timeout(self.timeout, work).await });
        let (status, body) = done.map_err(|_| call.timed_out(self.timeout))??;
        if !status.is_success() {
            return Err(call.error_response(status, &body).into());
        }
        let text = String::from_utf8(body.into()).map_err(|error| call.invalid_json(&error))?;
        let json = serde_json::from_str(&text).map_err(|error| call.invalid_json(&error))?;
        Ok(Reply { text, json })
    }

    /// Reads an event stream line by line until `on_line` returns false; a stream that the server
    /// ends is an error.
    pub fn listen(&self, path: &str, mut on_line: impl FnMut(&str) -> Result<bool>) -> Result<()> {
        let call = ClientCall { method: Method::GET, path, server: &self.url };
        self.runtime.block_on(async {
            let opened = timeout(self.timeout, self.open_stream(&call)).await;
            let body = opened.map_err(|_| call.timed_out(self.timeout))??;
            let mut lines = EventStreamLines { body, buffer: Vec::new() };
            while let Some(line) = lines.next(&call).await? {
                if !on_line(&line)? {
                    return Ok(());
                }
            }
            Err(call.stream_closed().into())
        })
    }

    /// Opens an event stream and returns its body.
    async fn open_stream(&self, call: &ClientCall<'_>) -> Result<Incoming, ClientError> {
        let response = self.exchange(call, None).await?;
        let status = response.status();
        let body = response.into_body();
        if status.is_success() {
            return Ok(body);
        }
        let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
        Err(call.error_response(
            status,
            &body.map_err(|error| call.protocol_error(&*error))?.to_bytes(),
        ))
    }

    async fn exchange(
        &self,
        call: &ClientCall<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = self.connect().await.map_err(|error| call.unreachable(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| call.protocol_error(&error))?;
        // The connection task ends with the response; its errors also reach `send_request` and the
        // body.
        tokio::spawn(connection);
        let request = self.request(call, body).map_err(|error| call.protocol_error(&error))?;
        sender.send_request(request).await.map_err(|error| call.protocol_error(&error))
    }

    async fn connect(&self) -> io::Result<Box<dyn ClientStream>> {
        let address = (self.url.host.as_str(), self.url.port);
        let stream = TcpStream::connect(address).await?;
        match &self.tls {
            Some(tls) => Ok(Box::new(tls.handshake(stream).await?)),
            None => Ok(Box::new(stream)),
        }
    }

    fn request(
        &self,
        call: &ClientCall<'_>,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(self.url.path(call.path))
            .header(header::HOST, &self.url.authority)
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::USER_AGENT, concat!("catraca/", env!("CARGO_PKG_VERSION")));
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.map(|body| body.to_string().into()).unwrap_or_default()))
    }
}

/// Splits the body of an event stream into lines.
struct EventStreamLines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl EventStreamLines {
    async fn next(&mut self, call: &ClientCall<'_>) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            let frame = timeout(SILENCE_MAX, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| call.timed_out(SILENCE_MAX))? else {
                return Ok(None);
            };
            if let Ok(data) = frame.map_err(|error| call.protocol_error(&error))?.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

/// A TCP connection, with or without TLS.
trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ClientStream for S {}

fn name_url_options(error: ClientBuildError) -> Error {
    let options = match error {
        ClientBuildError::UrlWithUser => "the key belongs in --key-file or CATRACA_KEY",
        _ => "--server and CATRACA_URL take the URL of a server",
    };
    Error::new(error).context(options)
}

/// The request that an error message names.
struct ClientCall<'a> {
    method: Method,
    path: &'a str,
    server: &'a ServerUrl,
}
