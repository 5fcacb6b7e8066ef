//! Reading a request's body: JSON by its own word, whole, small, and in time.
//!
//! A body without the JSON type is refused: no web page can send that type to a loopback address
//! unasked. Must not buffer more than the bound.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};

use super::problem::Problem;
use super::visit::Visit;

/// The largest body.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The whole body.
pub async fn read<B>(headers: &HeaderMap, body: B, visit: &Visit) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    refuse_other_types(headers)?;
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    gather(body, visit).await
}

/// Almost every body is one frame: it is handed on without a copy.
async fn gather<B>(mut body: B, visit: &Visit) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = next(&mut body, visit).await? {
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

/// The next piece; whoever is late is woken by the crowd, and finds out here.
async fn next<B>(body: &mut B, visit: &Visit) -> Result<Option<Frame<Bytes>>, Problem>
where
    B: Body<Data = Bytes> + Unpin,
{
    let frame = poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Pending if visit.is_late() => Poll::Ready(Err(too_slow(visit))),
        Poll::Pending => Poll::Pending,
        Poll::Ready(frame) => Poll::Ready(Ok(frame)),
    });
    let frame = frame.await?.transpose();
    frame.map_err(|_| Problem::bad("broken-body", "the body is cut short or badly framed"))
}

fn refuse_other_types(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported =
        |code, detail| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail));
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    if !is_json(kind) {
        let detail = "say `Content-Type: application/json`, and send the body as JSON";
        return unsupported("not-json", detail);
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            unsupported("encoded-body", "send the body as it is, without a Content-Encoding")
        }
        _ => Ok(()),
    }
}

fn is_json(kind: &[u8]) -> bool {
    if kind == b"application/json" {
        return true;
    }
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

fn too_large() -> Problem {
    let detail = format!("the body may have {BODY_BYTES_MAX} bytes; send less at a time");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}

fn too_slow(visit: &Visit) -> Problem {
    let patience = visit.shared.crowd.patience().body;
    let detail = format!("the body did not arrive within {patience:?}; send it at once");
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
