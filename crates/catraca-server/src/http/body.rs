//! Reading a request's body: whole, small, and in time.
//!
//! Must not buffer more than the bound, nor wait for a slow sender beyond the deadline.

use std::time::Duration;

use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;

use super::problem::Problem;

/// The largest body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// How long a sender may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The whole body.
pub async fn read<B>(body: B) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(DEADLINE, gather(body)).await {
        Ok(body) => body,
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow-body",
            "the body did not arrive within 10 seconds; send it at once",
        )),
    }
}

/// Almost every body is one frame: it is handed on without a copy.
async fn gather<B>(mut body: B) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad("broken-body", "the body ended early"))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

fn too_large() -> Problem {
    let detail = format!("the body may have {BODY_BYTES_MAX} bytes; send less at a time");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}
