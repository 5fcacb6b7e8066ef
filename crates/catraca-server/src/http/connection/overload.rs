//! Refusal of connections above a limit: a fixed 503 response, then close. Nothing is queued.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::listener::table::ConnectionLimit;

/// The most refusals in progress; further connections are closed without a response.
pub const REFUSALS_MAX: usize = 64;
/// How long one refusal may take, even if the peer does not read or close.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A complete response as a constant, so that a refusal costs no formatting.
macro_rules! refusal {
    ($length:literal, $detail:literal) => {
        concat!(
            "HTTP/1.1 503 Service Unavailable\r\n",
            "content-type: application/problem+json\r\n",
            "retry-after: 1\r\n",
            "connection: close\r\n",
            "content-length: ",
            $length,
            "\r\n\r\n",
            r#"{"type":"/docs/errors/too-many-connections","title":"Service Unavailable","#,
            r#""status":503,"code":"too-many-connections","detail":""#,
            $detail,
            "\"}",
        )
    };
}

const FULL: &str = refusal!("178", "connections_max is reached; try again in a second");
const PER_ADDRESS: &str =
    refusal!("194", "too many connections from your address; close some, or reuse them");

/// Sends 503 and closes, in a task of its own.
pub fn refuse(stream: TcpStream, limit: ConnectionLimit, permits: &Arc<Semaphore>) {
    let text = match limit {
        ConnectionLimit::Total => FULL,
        ConnectionLimit::PerAddress => PER_ADDRESS,
    };
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, send_and_drain(stream, text)).await;
            drop(permit);
        });
    }
}

/// Sends the response and reads until the peer closes: closing a socket with unread data sends a
/// reset, which may discard the response before the peer has read it.
async fn send_and_drain(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_has_the_length_it_announces_and_is_json() {
        for text in [FULL, PER_ADDRESS] {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], 503);
        }
    }
}
