//! Refusal of connections above a limit: the front end's fixed text, then close. Nothing is queued.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// The most refusals in progress on one listener; further connections are closed without a text.
pub const REFUSALS_MAX: usize = 64;
/// How long one refusal may take, even if the peer does not read or close.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends `text` and closes, in a task of its own.
pub fn refuse(stream: TcpStream, text: &'static [u8], permits: &Arc<Semaphore>) {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, send_and_drain(stream, text)).await;
            drop(permit);
        });
    }
}

/// Sends the text and reads until the peer closes: closing a socket with unread data sends a reset,
/// which may discard the text before the peer has read it.
async fn send_and_drain(mut stream: TcpStream, text: &[u8]) -> std::io::Result<()> {
    stream.write_all(text).await?;
    stream.shutdown().await?;
    let mut discarded = [0; 1024];
    loop {
        match stream.read(&mut discarded).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
