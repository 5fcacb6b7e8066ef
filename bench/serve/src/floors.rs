//! Bare servers: they read the body, decide nothing and answer a fixed JSON object.
//!
//! Their cost is the cost of HTTP with that stack: the lower bound of any check over HTTP. Must not
//! be slower than they have to be.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::routing::post;
use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// The path of the long response.
pub const STREAM_PATH: &str = "/stream";
/// Its length: 1 GiB.
pub const STREAM_BYTES: u64 = 1 << 30;
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

type Answer = Response<Either<Full<Bytes>, Zeros>>;

async fn hello(request: Request<Incoming>) -> Result<Answer, Infallible> {
    if request.uri().path() == STREAM_PATH {
        return Ok(Response::new(Either::Right(Zeros { left: STREAM_BYTES })));
    }
    let read = request.into_body().collect().await.map(|body| body.to_bytes().len());
    let body = Full::new(Bytes::from_static(HELLO.as_bytes()));
    let mut answer = Response::new(Either::Left(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    drop(read);
    Ok(answer)
}

/// A body of zeros.
struct Zeros {
    left: u64,
}

impl Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PART: [u8; 64 << 10] = [0; 64 << 10];
        let length = self.left.min(PART.len() as u64);
        self.left -= length;
        let part = Bytes::from_static(&PART[..length as usize]);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
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
