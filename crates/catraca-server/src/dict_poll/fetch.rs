//! One HTTP request for the states of buckets, on a connection of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use catraca::Outcome;
use catraca::client::ServerTls;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, RETRY_AFTER};
use hyper::http::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// From the connection to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The states of all policies have some 10 KiB, and the signature a few more.
const BODY_BYTES_MAX: usize = 256 << 10;

/// A call of `listBucketStates`.
pub(super) struct StatesRequest<'a> {
    pub(super) upstream: &'a str,
    pub(super) path: &'a str,
    pub(super) participant: &'a str,
    pub(super) ca_file: Option<PathBuf>,
}

/// Its answer.
pub(super) struct StatesResponse {
    pub(super) status: u16,
    /// The header `Retry-After`, which a 429 has.
    pub(super) retry_after: Option<String>,
    pub(super) body: String,
}

impl StatesResponse {
    /// What the settle of the call needs.
    pub(super) fn outcome(&self) -> Outcome {
        let retry_after = self.retry_after.iter();
        let headers = retry_after.map(|value| (RETRY_AFTER.to_string(), value.clone())).collect();
        Outcome { headers, ..Outcome::status(self.status) }
    }
}

impl StatesRequest<'_> {
    /// Sends it, and reads the whole answer.
    pub(super) async fn send(&self) -> Result<StatesResponse> {
        let answer = timeout(TIMEOUT, self.exchange()).await;
        answer.with_context(|| format!("{} gave no answer within {TIMEOUT:?}", self.upstream))?
    }

    async fn exchange(&self) -> Result<StatesResponse> {
        let url: Uri = self.upstream.parse()?;
        let host = url.host().context("[dict] upstream has no host")?;
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let is_https = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let connected = TcpStream::connect((name, port)).await;
        let stream = connected.with_context(|| format!("cannot connect to {}", self.upstream))?;
        let authority = url.authority().map_or(host, |own| own.as_str());
        if !is_https {
            return self.send_over(stream, authority).await;
        }
        let tls = ServerTls::new(name, self.ca_file.as_deref())?;
        self.send_over(tls.handshake(stream).await?, authority).await
    }

    async fn send_over<S>(&self, stream: S, authority: &str) -> Result<StatesResponse>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(driver);
        let request = Request::get(self.path)
            .header(HOST, authority)
            .header(ACCEPT, "application/xml")
            .header("pi-requestingparticipant", self.participant)
            .body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        driver.abort();
        let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(StatesResponse { status, retry_after, body })
    }
}
