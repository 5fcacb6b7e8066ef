//! Sending connections away when all places are taken: a short answer, and never a queue.
//!
//! Must not wait for a slow peer beyond a moment, nor serve more than a few farewells at once.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::connection_table::Limit;

/// Farewells at once; beyond it a connection is closed without a word.
pub const FAREWELLS_MAX: usize = 64;
/// How long a farewell may take.
const MOMENT: Duration = Duration::from_secs(1);

/// A whole answer, fixed, so that a refusal costs next to nothing.
macro_rules! farewell {
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

const FULL: &str = farewell!("177", "all connections are taken; try again in a second");
const PER_ADDRESS: &str =
    farewell!("197", "your address has too many connections; close some, or use them again");

/// Answers 503 and closes.
pub fn send_away(stream: TcpStream, limit: Limit, farewells: &Arc<Semaphore>) {
    let text = match limit {
        Limit::Total => FULL,
        Limit::PerAddress => PER_ADDRESS,
    };
    if let Ok(permit) = Arc::clone(farewells).try_acquire_owned() {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(MOMENT, farewell(stream, text)).await;
            drop(permit);
        });
    }
}

/// What the peer still sends is read, because closing over it would take the answer back.
async fn farewell(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    let mut heard = [0; 1024];
    loop {
        match stream.read(&mut heard).await {
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
    fn the_farewell_has_the_length_it_says_and_is_json() {
        for text in [FULL, PER_ADDRESS] {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], 503);
        }
    }
}
