//! Guards the login of an axum application: a wrong password costs five times as much as a right
//! one, and too many of them block the address for 15 minutes.
//!
//! `cargo run -p catraca --features axum --example axum_login`, and then
//! `curl -i -d wrong http://127.0.0.1:3000/login`.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use catraca::tower::RateLimitLayer;
use catraca::{Catalog, Engine};

const CATALOG: &str = r#"
[policy.login]
by      = ["ip"]
window  = "20 per 15m"
cost    = { "401" = 5, default = 1 }
reserve = 5                              # as if every attempt failed, until its outcome is known
block   = "15m"
message = "Too many attempts. Try again in {retry_after}."
"#;

fn application(engine: Engine) -> Router {
    let limit = RateLimitLayer::new(engine, "login").by_peer_address();
    let login = Router::new().route("/login", post(log_in)).layer(limit);
    login.route("/health", get(|| async { "ok" }))
}

async fn log_in(password: String) -> StatusCode {
    if password == "correct horse" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = application(Engine::new(Catalog::parse(CATALOG)?));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    // Without the address of its peer, the layer responds 500 and says so.
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catraca::ManualClock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Serves the application on a free port of the loopback address.
    async fn serve(clock: ManualClock) -> Result<SocketAddr, Box<dyn std::error::Error>> {
        let engine = Engine::builder(Catalog::parse(CATALOG)?).clock(clock).build();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = application(engine).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(address)
    }

    /// Sends a request and returns the whole response.
    async fn send(server: SocketAddr, line: &str, body: &str) -> std::io::Result<String> {
        let mut connection = TcpStream::connect(server).await?;
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        connection.read_to_string(&mut response).await?;
        Ok(response)
    }

    #[tokio::test]
    async fn wrong_passwords_block_the_address() -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let server = serve(clock.clone()).await?;
        for _ in 0..4 {
            let response = send(server, "POST /login", "wrong").await?;
            assert!(response.starts_with("HTTP/1.1 401"), "{response}");
            assert!(response.contains("ratelimit-policy: \"login\";q=20;w=900"), "{response}");
        }
        let denied = send(server, "POST /login", "correct horse").await?;
        assert!(denied.starts_with("HTTP/1.1 429"), "{denied}");
        assert!(denied.contains("retry-after: 900"), "{denied}");
        assert!(denied.contains("Too many attempts. Try again in 15 minutes."), "{denied}");
        let health = send(server, "GET /health", "").await?;
        assert!(health.starts_with("HTTP/1.1 200"), "other routes are not limited: {health}");
        clock.advance(Duration::from_secs(15 * 60));
        let allowed = send(server, "POST /login", "correct horse").await?;
        assert!(allowed.starts_with("HTTP/1.1 200"), "{allowed}");
        Ok(())
    }
}
