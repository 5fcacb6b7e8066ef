//! Reads a request body: only JSON, at most `BODY_BYTES_MAX`, within `body_timeout`.
//!
//! `Content-Type: application/json` is required because a web page cannot send it to a loopback
//! address without a CORS preflight, and the server allows none.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use hyper::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::http::bodies::problem::Problem;
use crate::listener::Connection;

/// The largest body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// How much of a larger body is read and discarded, in bytes.
const DISCARDED_BYTES_MAX: usize = 16 << 20;
/// How long the server waits for the next part of a body that it discards.
const DISCARD_PAUSE: Duration = Duration::from_millis(500);

/// Reads the whole body.
pub async fn read<B>(
    headers: &HeaderMap,
    body: B,
    connection: &Connection,
) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    require_plain_json(headers)?;
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        // A client that waits for `100 Continue` sends nothing after the 413.
        if !headers.contains_key(header::EXPECT) {
            discard(body, connection).await;
        }
        return Err(too_large());
    }
    collect(body, connection).await
}

/// Collects the frames. Almost every body is one frame, which is returned without a copy.
async fn collect<B>(mut body: B, connection: &Connection) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    // The first frame stays as it is; only further ones are copied.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = next_frame(&mut body, connection).await? {
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > BODY_BYTES_MAX {
            discard(body, connection).await;
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

/// Reads the rest of a body that is too large, within bounds. If the connection were closed while
/// the client still sends, the client's system would drop the 413 before the client reads it.
async fn discard<B>(mut body: B, connection: &Connection)
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut left = DISCARDED_BYTES_MAX;
    // A declared length beyond the bound cannot be read to its end, so nothing is read.
    if body.size_hint().lower() > left as u64 {
        return;
    }
    // A client that stops in the middle of its body gets the 413 after a pause.
    while let Ok(Ok(Some(frame))) =
        tokio::time::timeout(DISCARD_PAUSE, next_frame(&mut body, connection)).await
    {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// The next frame. When `body_timeout` has passed, `Connections` wakes this task, and the poll that
/// finds no data returns the 408.
async fn next_frame<B>(
    body: &mut B,
    connection: &Connection,
) -> Result<Option<Frame<Bytes>>, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    let frame = poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Pending if connection.has_expired() => Poll::Ready(Err(too_slow(connection))),
        Poll::Pending => Poll::Pending,
        Poll::Ready(frame) => Poll::Ready(Ok(frame)),
    });
    let frame = frame.await?.transpose();
    frame.map_err(|_| {
        Problem::bad("broken-body", "the body is incomplete or has invalid HTTP framing")
    })
}

fn require_plain_json(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported =
        |code, detail| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail));
    let mut content_types = headers.get_all(header::CONTENT_TYPE).iter();
    let content_type = content_types.next().map_or(&b""[..], |value| value.as_bytes());
    if content_types.next().is_some() {
        let detail = "`Content-Type` is sent more than once; send it once";
        return Err(Problem::bad("repeated-header", detail));
    }
    if !is_json(content_type) {
        let detail = "send the body as JSON, with `Content-Type: application/json`";
        return unsupported("not-json", detail);
    }
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        let detail = "send the body uncompressed, without a Content-Encoding";
        return unsupported("encoded-body", detail);
    }
    Ok(())
}

fn is_json(content_type: &[u8]) -> bool {
    // The common case, without a search.
    if content_type == b"application/json" {
        return true;
    }
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes; send less at a time");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}

fn too_slow(connection: &Connection) -> Problem {
    let timeout = connection.timeouts().body;
    let detail = format!("the body did not arrive within {timeout:?}; send it without pauses");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_may_name_its_characters_and_nothing_else_is_json() {
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/json ;x"] {
            assert!(is_json(kind.as_bytes()), "{kind}");
        }
        for kind in ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"] {
            assert!(!is_json(kind.as_bytes()), "{kind}");
        }
    }
}
