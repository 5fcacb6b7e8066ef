//! An axum application whose limits are those of a Catraca server, shared by all its processes: the
//! layer is that of `axum_login`, and the limiter is a client.
//!
//! Start `catraca serve` with a catalog that has the policy `login`, then `cargo run -p catraca
//! --features axum,client --example axum_shared`, and then `curl -i http://127.0.0.1:3000/`.
//! `CATRACA_URL` and `CATRACA_KEY` name another server and its key.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use catraca::Client;
use catraca::client::ClientBuilder;
use catraca::tower::RateLimitLayer;

/// The application, limited by the server of this client.
pub async fn application(client: ClientBuilder) -> Result<Router, Box<dyn Error>> {
    // glue: begin
    let client = client.caller("axum-shared/1").build()?;
    for warning in client.verify(&["login"]).await {
        eprintln!("{}: {warning}", warning.name());
    }
    let limit = RateLimitLayer::new(client, "login").by_peer_address();
    // glue: end
    Ok(Router::new().route("/", get(|| async { "welcome\n" })).layer(limit))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let application = application(Client::from_env()).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let service = application.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}
