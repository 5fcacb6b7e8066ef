//! A connection of HTTP/2 to an upstream. Its requests share it, so it has tasks of its own.
//!
//! It is open when the upstream has sent its settings: they say how many requests it takes at once,
//! and a server that does not speak HTTP/2 sends none.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::h2_upload::{H2UploadBody, take_last_polled};
use super::stream_pool::StreamConnection;

/// The most requests of a connection at once, if the upstream allows more.
const STREAMS_MAX: usize = 100;
/// How much of a response may wait for its client.
const STREAM_WINDOW: u32 = 256 << 10;
/// As much as all streams, so that clients that do not read cannot stop the others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;
/// The most bytes of a request that wait for the upstream.
const SEND_BYTES_MAX: usize = 64 << 10;
/// The largest head of a response in bytes.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// How often a silent upstream with requests is asked whether it is there, and how long it may take
/// to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection of HTTP/2.
pub struct H2Connection {
    sender: SendRequest<H2UploadBody>,
    limit: Arc<StreamLimit>,
    /// Whether it gets no more requests.
    is_retired: AtomicBool,
    has_answered: AtomicBool,
    is_break_noted: AtomicBool,
}

impl H2Connection {
    /// Begins HTTP/2 on a connection, and waits for the settings of the upstream.
    pub async fn open<S>(stream: S) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limit = Arc::new(StreamLimit::default());
        let handshake = http2::Builder::new(SettingsExecutor(Arc::clone(&limit)))
            .timer(TokioTimer::new())
            // None before the settings have arrived.
            .initial_max_send_streams(0)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_send_buf_size(SEND_BYTES_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(stream));
        let (sender, driver) = handshake.await.map_err(io::Error::other)?;
        let driven = Arc::clone(&limit);
        tokio::spawn(async move {
            let mut driver = pin!(driver);
            poll_fn(|cx| {
                driven.wake_at_settings(cx);
                // What another task on this thread has asked belongs to no task of this one.
                drop(take_last_polled());
                let polled = driver.as_mut().poll(cx);
                driven.set(driver.current_max_send_streams());
                polled.map(drop)
            })
            .await;
            driven.on_end();
        });
        limit.wait().await?;
        Ok(Self {
            sender,
            limit,
            is_retired: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            is_break_noted: AtomicBool::new(false),
        })
    }

    /// What sends a request.
    pub fn sender(&self) -> SendRequest<H2UploadBody> {
        self.sender.clone()
    }

    /// It gets no more requests; those that it has go on.
    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Notes that the upstream answered a request.
    pub fn on_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Whether a request was answered.
    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Whether this is the first request that finds it broken: a connection breaks once, for all of
    /// its requests.
    pub fn note_break(&self) -> bool {
        !self.is_break_noted.swap(true, Ordering::Relaxed)
    }
}

impl StreamConnection for H2Connection {
    fn is_open(&self) -> bool {
        !self.is_retired.load(Ordering::Relaxed) && !self.sender.is_closed()
    }

    fn streams_max(&self) -> usize {
        self.limit.streams_max.load(Ordering::Relaxed).min(STREAMS_MAX)
    }
}

/// How many requests the upstream takes at once.
#[derive(Default)]
struct StreamLimit {
    /// Zero before the settings have arrived.
    streams_max: AtomicUsize,
    is_over: AtomicBool,
    changed: Notify,
    /// The task that reads the limit, until it knows one.
    driver: Mutex<Option<Waker>>,
}

impl StreamLimit {
    /// Waits until the settings have arrived.
    async fn wait(&self) -> io::Result<()> {
        loop {
            // Created before the values are read, so that a change in between is noticed.
            let changed = self.changed.notified();
            if self.is_known() {
                return Ok(());
            }
            if self.is_over.load(Ordering::Acquire) {
                return Err(io::Error::other("it ended the connection before it spoke HTTP/2"));
            }
            changed.await;
        }
    }

    fn is_known(&self) -> bool {
        self.streams_max.load(Ordering::Acquire) > 0
    }

    fn set(&self, streams_max: usize) {
        if self.streams_max.swap(streams_max, Ordering::AcqRel) == 0 && streams_max > 0 {
            self.changed.notify_one();
        }
    }

    fn on_end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    fn wake_at_settings(&self, cx: &Context<'_>) {
        if !self.is_known() {
            *self.driver.lock() = Some(cx.waker().clone());
        }
    }

    /// The connection has moved bytes, which may have been the settings.
    fn on_bytes(&self) {
        if !self.is_known()
            && let Some(driver) = self.driver.lock().take()
        {
            driver.wake();
        }
    }
}

/// Runs the tasks of a connection. hyper does not report that the settings have arrived, so the
/// limit is read after each step of the task that moves bytes, which is the first one.
#[derive(Clone)]
struct SettingsExecutor(Arc<StreamLimit>);

impl<F> Executor<F> for SettingsExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        let limit = (!self.0.is_known()).then(|| Arc::clone(&self.0));
        let upload = take_last_polled();
        tokio::spawn(async move {
            let mut task = pin!(task);
            poll_fn(|cx| {
                // hyper asks for no part of a body while the last one waits for the upstream, so it
                // does not notice that the exchange is over.
                if upload.as_ref().is_some_and(|upload| upload.is_over(cx)) {
                    return Poll::Ready(());
                }
                let polled = task.as_mut().poll(cx).map(drop);
                drop(take_last_polled());
                if let Some(limit) = &limit {
                    limit.on_bytes();
                }
                polled
            })
            .await;
        });
    }
}
