//! The client of a server's HTTP API, as the verbs of the command line use it.
//!
//! One connection per call: a person waits for one answer, and nothing is worth keeping open. Must
//! know no more of the server than its public API, and must never show a key.

mod key;
mod target;
mod tls;
mod trouble;

use std::io;
use std::time::Duration;

use anyhow::Result;
use axum::http::{HeaderValue, Method, Request, Response, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::args::Remote;
use crate::render::tell;

use target::Target;
use tls::Secure;
pub use trouble::Trouble;

/// The largest answer that is taken.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A feed says that it is there more often than this.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Speaks to one server.
pub struct Client {
    runtime: Runtime,
    target: Target,
    secure: Option<Secure>,
    key: Option<HeaderValue>,
    patience: Duration,
}

/// What a server answered.
pub struct Reply {
    /// As it came.
    pub text: String,
    /// The same, read.
    pub json: Value,
}

impl Client {
    /// A client of the server that was named; nothing is sent yet.
    pub fn new(remote: &Remote) -> Result<Self> {
        let target = Target::read(&remote.server)?;
        let secure = target.secure.then(|| Secure::new(&target.host, remote.ca.as_deref()));
        let secure = secure.transpose()?;
        let key = key::read(remote.key_file.as_deref())?;
        if key.is_some() && target.is_overheard() {
            tell(format_args!("catraca: the key goes to {} in clear; use https", target.shown()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, target, secure, key, patience: remote.timeout })
    }

    /// Asks for something.
    pub fn get(&self, path: &str) -> Result<Reply> {
        self.send(Method::GET, path, None)
    }

    /// Sends something.
    pub fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.send(Method::POST, path, Some(body))
    }

    /// One call, with its whole answer.
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply> {
        let call = Call { method, path, at: &self.target };
        let work = async {
            let answer = self.exchange(&call, body).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| call.broken(&*error))?.to_bytes();
            Ok::<_, Trouble>((status, body))
        };
        let done = self.runtime.block_on(async { timeout(self.patience, work).await });
        let (status, body) = done.map_err(|_| call.late(self.patience))??;
        if !status.is_success() {
            return Err(call.refused(status, &body).into());
        }
        let text = String::from_utf8(body.into()).map_err(|error| call.garbled(&error))?;
        let json = serde_json::from_str(&text).map_err(|error| call.garbled(&error))?;
        Ok(Reply { text, json })
    }

    /// Listens to a feed, line by line, until it ends or has been heard enough.
    pub fn listen(&self, path: &str, mut hear: impl FnMut(&str) -> Result<bool>) -> Result<()> {
        let call = Call { method: Method::GET, path, at: &self.target };
        self.runtime.block_on(async {
            let begun = timeout(self.patience, self.begin(&call)).await;
            let body = begun.map_err(|_| call.late(self.patience))??;
            let mut lines = Lines { body, waiting: Vec::new() };
            while let Some(line) = lines.next(&call).await? {
                if !hear(&line)? {
                    return Ok(());
                }
            }
            Err(call.ended().into())
        })
    }

    /// The body of a feed, once it has begun.
    async fn begin(&self, call: &Call<'_>) -> Result<Incoming, Trouble> {
        let answer = self.exchange(call, None).await?;
        let (status, body) = (answer.status(), answer.into_body());
        if status.is_success() {
            return Ok(body);
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        Err(call.refused(status, &body.map_err(|error| call.broken(&*error))?.to_bytes()))
    }

    async fn exchange(
        &self,
        call: &Call<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Trouble> {
        let stream = self.connect().await.map_err(|error| call.unreachable(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| call.broken(&error))?;
        // It ends with the answer; what goes wrong there is told to whoever waits for that.
        tokio::spawn(connection);
        let request = self.request(call, body).map_err(|error| call.broken(&error))?;
        sender.send_request(request).await.map_err(|error| call.broken(&error))
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let address = (self.target.host.as_str(), self.target.port);
        let stream = TcpStream::connect(address).await?;
        match &self.secure {
            Some(secure) => Ok(Box::new(secure.over(stream).await?)),
            None => Ok(Box::new(stream)),
        }
    }

    fn request(
        &self,
        call: &Call<'_>,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, axum::http::Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(self.target.path(call.path))
            .header(header::HOST, &self.target.authority)
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

/// A feed, line by line.
struct Lines {
    body: Incoming,
    waiting: Vec<u8>,
}

impl Lines {
    async fn next(&mut self, call: &Call<'_>) -> Result<Option<String>, Trouble> {
        loop {
            if let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            let frame = timeout(SILENCE_MAX, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| call.late(SILENCE_MAX))? else { return Ok(None) };
            if let Ok(data) = frame.map_err(|error| call.broken(&error))?.into_data() {
                self.waiting.extend_from_slice(&data);
            }
        }
    }
}

/// A connection, in clear or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// One call, as an error speaks of it.
struct Call<'a> {
    method: Method,
    path: &'a str,
    at: &'a Target,
}
