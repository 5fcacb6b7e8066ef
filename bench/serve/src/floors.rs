//! Bare servers: they read the body, decide nothing and answer a fixed JSON object.
//!
//! Their cost is the cost of HTTP with that stack: the lower bound of any check over HTTP. Must not
//! be slower than they have to be.

use std::convert::Infallible;

use axum::Json;
use axum::routing::post;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

const HELLO: &str = r#"{"allowed":true,"limit":1000000,"remaining":999999,"reset_after":0}"#;

/// Serves until the process is ended.
pub fn serve(kind: &str, port: u16) -> Result<(), String> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|e| e.to_string())?;
        match kind {
            "hyper" => bare_hyper(listener).await,
            "axum" => bare_axum(listener).await,
            _ => Err(format!("no bare server {kind:?}")),
        }
    })
}

async fn bare_hyper(listener: TcpListener) -> Result<(), String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(hello))
                .await;
            drop(connection);
        });
    }
}

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let read = request.into_body().collect().await.map(|body| body.to_bytes().len());
    let mut answer = Response::new(Full::new(Bytes::from_static(HELLO.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    drop(read);
    Ok(answer)
}

#[derive(Deserialize)]
struct CheckInput {
    gate: String,
}

#[derive(Serialize)]
struct CheckOutput {
    allowed: bool,
    limit: i64,
    remaining: i64,
    reset_after: i64,
}

async fn bare_axum(listener: TcpListener) -> Result<(), String> {
    let tell = |Json(asked): Json<CheckInput>| async move {
        let remaining = 999_999 - asked.gate.len() as i64;
        Json(CheckOutput { allowed: true, limit: 1_000_000, remaining, reset_after: 0 })
    };
    let router = axum::Router::new().route("/v1/check", post(tell));
    axum::serve(listener, router).await.map_err(|error| error.to_string())
}
