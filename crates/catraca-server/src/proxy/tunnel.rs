//! A connection that has switched to another protocol, such as WebSocket: bytes are copied in both
//! directions until one side ends, or nothing moves for `idle_timeout`.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::exchange::LiveConnection;
use super::pending_settle::PendingSettle;

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
}

impl Tunnel {
    /// Copies until the end, and settles.
    pub async fn run(mut self) {
        let ending = self.copy().await;
        let Some(mut settle) = self.settle.take() else { return };
        match ending {
            Ok(()) => settle.complete(),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                settle.on_broken("upstream-timeout");
            }
            // One side is gone without a word, as sides of other protocols often are.
            Err(_) => settle.complete(),
        }
    }

    async fn copy(&mut self) -> io::Result<()> {
        let live = &mut self.live;
        let mut switched = std::pin::pin!(&mut self.upstream);
        let upstream = poll_fn(|cx| {
            live.poll_driver(cx);
            switched.as_mut().poll(cx)
        });
        let upstream = TokioIo::new(upstream.await.map_err(io::Error::other)?);
        let client = TokioIo::new((&mut self.client).await.map_err(io::Error::other)?);
        let (mut from_client, mut to_client) = split(client);
        let (mut from_upstream, mut to_upstream) = split(upstream);
        let activity = Activity::default();
        let upload = copy(&mut from_client, &mut to_upstream, &activity);
        let download = copy(&mut from_upstream, &mut to_client, &activity);
        tokio::select! {
            ended = async { tokio::try_join!(upload, download) } => ended.map(|_| ()),
            () = activity.wait_for_silence(self.idle) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Copies one direction until its sender ends, and then ends the receiver's side.
async fn copy<R, W>(from: &mut R, to: &mut W, activity: &Activity) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        activity.0.store(true, Ordering::Relaxed);
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
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
