//! A connection that has switched to another protocol, such as WebSocket: bytes are copied in both
//! directions until one side ends, or nothing moves for `idle_timeout`.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::sleep_until;

use super::exchange::LiveConnection;
use super::pending_settle::PendingSettle;
use super::request_limits::OpenRequest;
use super::settle_deadline::HOLD_OVER;
use crate::context::ServerContext;
use crate::observe::proxy_metrics::UpstreamCause;

/// The most bytes that are copied at once.
const COPY_BYTES: usize = 16 << 10;

/// The two sides of a switched connection.
pub struct Tunnel {
    /// The client's side, after hyper has sent the 101.
    pub client: OnUpgrade,
    /// The upstream's side.
    pub upstream: OnUpgrade,
    /// The connection to the upstream, which must be driven until it has switched.
    pub live: LiveConnection,
    /// The settle of its check.
    pub settle: Option<PendingSettle>,
    /// How long it may be silent.
    pub idle: Duration,
    /// Counts failures.
    pub server: Arc<ServerContext>,
    /// Counts the request for its client.
    pub open: Option<OpenRequest>,
}

/// How a tunnel ended that was not closed by one of its sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelFailure {
    /// The client's side broke.
    Client,
    /// The upstream's side broke.
    Upstream,
    /// Nothing moved for `idle_timeout`.
    Silence,
    /// Its check had to be settled, and a lease counts it.
    HoldOver,
}

impl TunnelFailure {
    /// How the outcome names it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client-gone",
            Self::Upstream => "upstream-broken",
            Self::Silence => "upstream-timeout",
            Self::HoldOver => HOLD_OVER,
        }
    }

    /// How it is counted; none if the client failed.
    fn cause(self) -> Option<UpstreamCause> {
        match self {
            Self::Client | Self::HoldOver => None,
            Self::Upstream => Some(UpstreamCause::BrokenOff),
            Self::Silence => Some(UpstreamCause::Silent),
        }
    }
}

impl Tunnel {
    /// Copies until the end, and settles at the end, or when `hold` is about to end: without its
    /// lease the tunnel would not be counted any more, and then it ends too.
    pub async fn run(mut self) {
        let mut settle = self.settle.take();
        // Until the end.
        let _open = self.open.take();
        let server = Arc::clone(&self.server);
        let deadline = settle.as_ref().and_then(PendingSettle::deadline);
        let ending = match deadline {
            None => self.copy().await,
            Some(deadline) => {
                let mut copy = pin!(self.copy());
                tokio::select! {
                    ending = &mut copy => ending,
                    () = sleep_until(deadline.at) => match deadline.ends_response {
                        true => Err(TunnelFailure::HoldOver),
                        false => {
                            if let Some(mut settle) = settle.take() {
                                settle.on_broken(HOLD_OVER);
                            }
                            copy.await
                        }
                    },
                }
            }
        };
        if let Some(cause) = ending.err().and_then(TunnelFailure::cause) {
            server.proxy_metrics.note_upstream_failure(cause);
        }
        let Some(mut settle) = settle else { return };
        match ending {
            Ok(()) => settle.complete(),
            Err(failure) => settle.on_broken(failure.as_str()),
        }
    }

    async fn copy(&mut self) -> Result<(), TunnelFailure> {
        let live = &mut self.live;
        let mut switched = pin!(&mut self.upstream);
        let upstream = poll_fn(|cx| {
            live.poll_driver(cx);
            switched.as_mut().poll(cx)
        });
        let upstream = TokioIo::new(upstream.await.map_err(|_| TunnelFailure::Upstream)?);
        let client = (&mut self.client).await.map_err(|_| TunnelFailure::Client)?;
        let client = TokioIo::new(client);
        let (mut from_client, mut to_client) = split(client);
        let (mut from_upstream, mut to_upstream) = split(upstream);
        let activity = Activity::default();
        let upload = async {
            let copied = copy(&mut from_client, &mut to_upstream, &activity).await;
            copied.map_err(|failed| match failed {
                CopyFailure::Read => TunnelFailure::Client,
                CopyFailure::Write => TunnelFailure::Upstream,
            })
        };
        let download = async {
            let copied = copy(&mut from_upstream, &mut to_client, &activity).await;
            copied.map_err(|failed| match failed {
                CopyFailure::Read => TunnelFailure::Upstream,
                CopyFailure::Write => TunnelFailure::Client,
            })
        };
        tokio::select! {
            ended = async { tokio::try_join!(upload, download) } => ended.map(|_| ()),
            () = activity.wait_for_silence(self.idle) => Err(TunnelFailure::Silence),
        }
    }
}

/// Which side of a copy failed.
enum CopyFailure {
    Read,
    Write,
}

/// Copies one direction until its sender ends, and then ends the receiver's side.
async fn copy<R, W>(from: &mut R, to: &mut W, activity: &Activity) -> Result<(), CopyFailure>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = from.read(&mut buffer).await.map_err(|_| CopyFailure::Read)?;
        activity.0.store(true, Ordering::Relaxed);
        let written = match count {
            0 => to.shutdown().await,
            _ => to.write_all(&buffer[..count]).await,
        };
        written.map_err(|_| CopyFailure::Write)?;
        if count == 0 {
            return Ok(());
        }
        to.flush().await.map_err(|_| CopyFailure::Write)?;
    }
}

/// Whether bytes moved since the last look.
#[derive(Default)]
struct Activity(AtomicBool);

impl Activity {
    /// Returns when nothing moved for at least `limit`, and at most twice as long.
    async fn wait_for_silence(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit).await;
            if !self.0.swap(false, Ordering::Relaxed) {
                return;
            }
        }
    }
}
