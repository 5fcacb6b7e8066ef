//! A connection to an upstream, driven by the task of the request that uses it.
//!
//! hyper usually runs a connection as a task of its own. Here the task of the client's connection
//! polls it: a request needs no switch between tasks, and a client that hangs up ends both.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use catraca::client::ServerTls;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::http::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::connection_pool::PoolPermit;
use super::upload_body::UploadBody;

/// The most that hyper buffers of a connection.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// The most header lines of a response.
const HEAD_LINES_MAX: usize = 100;

/// hyper's connection, whose type has no name.
type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection to an upstream.
pub struct UpstreamConnection {
    sender: http1::SendRequest<UploadBody>,
    /// Absent after the connection has ended.
    driver: Option<Driver>,
    /// Counts the connection until it is dropped.
    permit: PoolPermit<Self>,
}

/// Why a request has no response.
pub enum SendError {
    /// It was not written, because the connection had been closed.
    Unsent(Box<Request<UploadBody>>),
    /// The upstream may have got it.
    Broken(hyper::Error),
}

impl UpstreamConnection {
    /// Connects.
    pub async fn open(
        host: &str,
        port: u16,
        tls: Option<&ServerTls>,
        permit: PoolPermit<Self>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        match tls {
            Some(tls) => Self::begin(tls.handshake(stream).await?, permit).await,
            None => Self::begin(stream, permit).await,
        }
    }

    async fn begin<S>(stream: S, permit: PoolPermit<Self>) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER_BYTES_MAX).max_headers(HEAD_LINES_MAX);
        let handshake = builder.handshake(TokioIo::new(stream));
        let (sender, driver) = handshake.await.map_err(io::Error::other)?;
        Ok(Self { sender, driver: Some(Box::pin(driver.with_upgrades())), permit })
    }

    /// Closes it, and returns the permission to make another one.
    pub fn into_permit(self) -> PoolPermit<Self> {
        self.permit
    }

    /// Whether it is open and takes a request.
    pub fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_driver(cx);
        self.driver.is_some() && matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())))
    }

    /// Moves bytes. An end of the connection also reaches the response or its body.
    pub fn poll_driver(&mut self, cx: &mut Context<'_>) {
        let over = self.driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready());
        if over {
            // Dropped, because that ends what waits for it.
            self.driver = None;
        }
    }

    /// Begins to send a request; the result must be polled together with the connection.
    pub fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + use<> {
        let response = self.sender.try_send_request(request);
        async move {
            response.await.map_err(|mut error| match error.take_message() {
                Some(request) => SendError::Unsent(Box::new(request)),
                None => SendError::Broken(error.into_error()),
            })
        }
    }
}
