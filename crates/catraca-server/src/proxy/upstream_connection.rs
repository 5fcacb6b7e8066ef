//! A connection to an upstream, driven by the task of the request that uses it.
//!
//! hyper usually runs a connection as a task of its own. Here the task of the client's connection
//! polls it: a request needs no switch between tasks, and a client that hangs up ends both.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use catraca::client::ServerTls;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::http::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::coop;

use super::connection_pool::PoolPermit;
use super::idle_timer::IdleTimer;
use super::upload_body::UploadBody;
use crate::http_wire::quiet_waker::quietly;

/// The most that hyper buffers of a connection.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// hyper's connection, whose type has no name.
type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection to an upstream.
pub struct UpstreamConnection {
    sender: http1::SendRequest<UploadBody>,
    /// Absent after the connection has ended.
    driver: Option<Driver>,
    /// Waits for responses. It stays with the connection, so that a request needs no new timer.
    pub timer: IdleTimer,
    /// Counts the connection until it is dropped.
    permit: PoolPermit<Self>,
}

/// Why a request has no response.
pub enum SendError {
    /// It was not written, because the connection had been closed.
    Unsent(Box<Request<UploadBody>>),
    /// The upstream has got its head at most, and certainly did not process it.
    Refused(Box<Request<UploadBody>>),
    /// The upstream may have got it.
    Broken {
        /// What happened.
        error: hyper::Error,
        /// Whether no other request has failed with the same connection.
        is_first: bool,
    },
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

    /// Begins HTTP/1.1 on a connection.
    pub async fn begin<S>(stream: S, permit: PoolPermit<Self>) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = http1::Builder::new();
        // The most header lines are hyper's default, 100; see `http1_builder`.
        builder.max_buf_size(BUFFER_BYTES_MAX);
        let handshake = builder.handshake(TokioIo::new(stream));
        let (sender, driver) = handshake.await.map_err(io::Error::other)?;
        let driver: Driver = Box::pin(driver.with_upgrades());
        Ok(Self { sender, driver: Some(driver), timer: IdleTimer::default(), permit })
    }

    /// Closes it, and returns the permission to make another one.
    pub fn into_permit(self) -> PoolPermit<Self> {
        self.permit
    }

    /// Whether the exchange is over, so that it can take another request. It may have been closed
    /// since it was polled last, which `is_usable` finds out.
    pub fn is_idle(&mut self) -> bool {
        // Most responses end with the poll that received their last byte.
        self.sender.is_ready() || self.is_usable()
    }

    /// Whether it is open and takes a request.
    ///
    /// It wakes no task afterwards: the task that sends a request polls it again. With the waker of
    /// that task, sending would schedule the task once more, for nothing.
    pub fn is_usable(&mut self) -> bool {
        self.poll_driver(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Moves bytes. An end of the connection also reaches the response or its body.
    pub fn poll_driver(&mut self, cx: &mut Context<'_>) {
        let over = self.driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready());
        if over {
            // Dropped, because that ends what waits for it.
            self.driver = None;
        }
    }

    /// The next part of the body of a response. Moves bytes if there is none yet.
    pub fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = poll_passively(cx, |cx| Pin::new(&mut *body).poll_frame(cx));
        if polled.is_ready() {
            return polled;
        }
        // This poll asked for a part, which the connection may have now.
        self.poll_driver(cx);
        poll_passively(cx, |cx| Pin::new(body).poll_frame(cx))
    }

    /// Begins to send a request; the result must be polled after the connection, by the same task.
    pub fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + use<> {
        let response = self.sender.try_send_request(request);
        async move {
            let mut response = pin!(response);
            let response = poll_fn(|cx| poll_passively(cx, |cx| response.as_mut().poll(cx)));
            response.await.map_err(|mut error| match error.take_message() {
                Some(request) => SendError::Unsent(Box::new(request)),
                None => SendError::Broken { error: error.into_error(), is_first: true },
            })
        }
    }
}

/// Polls what only `poll_driver` makes ready. The task that calls it polls the connection too, and
/// is woken for that: another waker here would schedule the task once more for what it sees anyway.
fn poll_passively<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let (polled, held) = quietly(|| poll(&mut Context::from_waker(Waker::noop())));
    // The caller that gets a part asks for the next one, and then the connection is polled again.
    if let Some(waker) = held.filter(|_| polled.is_pending()) {
        waker.wake();
    }
    // tokio makes a channel pending, and wakes, when a task has used up its turn.
    if polled.is_pending() && !coop::has_budget_remaining() {
        cx.waker().wake_by_ref();
    }
    polled
}
