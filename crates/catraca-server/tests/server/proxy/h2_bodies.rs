//! Bodies and trailers of requests over HTTP/2 to an upstream: back pressure, and what passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::http::{HeaderMap, Request, Response};
use tokio::runtime::Runtime;

use super::h2_helpers::{H2TestUpstream, TlsProxy, answer, catalog, read_body};
use super::helpers::{ProxyServer, SOON, TestUpstream, response, wait_until};

const LIMIT: &str = "window = '9999 per 1m'";
const STREAMS_MAX: u32 = 100;

#[test]
fn a_slow_reader_and_a_slow_upstream_stop_the_sender() {
    const BOUND: usize = 4 << 20;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let upstream = H2TestUpstream::start(STREAMS_MAX, move |(request, mut respond)| {
        let counted = Arc::clone(&counted);
        async move {
            match request.uri().path() {
                "/large" => send_without_end(respond, &counted).await,
                "/unread" => std::future::pending::<()>().await,
                _ => answer(&mut respond, "small"),
            }
        }
    });
    let proxy = TlsProxy::start(&catalog(LIMIT, &upstream.url));
    Runtime::new().unwrap().block_on(async {
        let mut client = proxy.client::<CountedBody>(1_000).await;
        let read = Arc::new(AtomicUsize::new(0));
        let get = |path: &str| {
            let body = CountedBody { left: 0, read: Arc::default() };
            Request::get(format!("https://localhost{path}")).body(body).unwrap()
        };
        let unread = client.send_request(get("/large")).await.unwrap();
        let body = CountedBody { left: 1 << 30, read: Arc::clone(&read) };
        let upload = Request::post("https://localhost/unread").body(body).unwrap();
        let upload = tokio::spawn(client.send_request(upload));
        // Other streams of the same connections go on.
        for _ in 0..300 {
            let answer = client.send_request(get("/small")).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "small");
        }
        let bytes = [sent.load(Ordering::SeqCst), read.load(Ordering::SeqCst)];
        assert!(bytes.iter().all(|bytes| (1..BOUND).contains(bytes)), "{bytes:?}");
        upload.abort();
        drop(unread);
    });
    assert_eq!(upstream.connections(), 1);
}

/// The upstream answers a request whose body it does not read; what is left of the body must not
/// stay on the connection.
#[test]
fn an_upload_that_the_upstream_does_not_read_ends_with_its_exchange() {
    const UPLOADS: usize = 5;
    let resets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&resets);
    let upstream = H2TestUpstream::start(STREAMS_MAX, move |(request, mut respond)| {
        let counted = Arc::clone(&counted);
        async move {
            answer(&mut respond, "ok");
            // Takes what fits into the window and gives none of the window back.
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.data().await {}
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream.url));
    for _ in 0..UPLOADS {
        let mut client = server.connect();
        client.send("POST /", &[], &vec![b'a'; 300_000]);
        assert_eq!(client.read_response().status, 200);
    }
    wait_until("every stream is reset", || resets.load(Ordering::SeqCst) == UPLOADS);
    assert_eq!(upstream.connections(), 1);
}

/// Sends as much as it is allowed to.
async fn send_without_end(mut respond: h2::server::SendResponse<Bytes>, sent: &AtomicUsize) {
    let block = Bytes::from(vec![b'a'; 16 << 10]);
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    loop {
        body.reserve_capacity(block.len());
        match std::future::poll_fn(|cx| body.poll_capacity(cx)).await {
            Some(Ok(capacity)) => {
                let part = block.slice(..capacity.min(block.len()));
                sent.fetch_add(part.len(), Ordering::SeqCst);
                body.send_data(part, false).unwrap();
            }
            _ => return,
        }
    }
}

/// A body that counts what is read of it.
struct CountedBody {
    left: usize,
    read: Arc<AtomicUsize>,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        let length = self.left.min(16 << 10);
        if length == 0 {
            return std::task::Poll::Ready(None);
        }
        self.left -= length;
        self.read.fetch_add(length, Ordering::SeqCst);
        let part = hyper::body::Frame::data(Bytes::from(vec![b'a'; length]));
        std::task::Poll::Ready(Some(Ok(part)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

#[test]
fn trailers_pass_in_both_directions() {
    let upstream = H2TestUpstream::start(STREAMS_MAX, |(request, mut respond)| async move {
        let mut body = request.into_body();
        read_body(&mut body).await;
        let trailers = body.trailers().await.unwrap().unwrap_or_default();
        let mut names: Vec<_> = trailers.keys().map(|name| name.to_string()).collect();
        names.sort_unstable();
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from(names.join(" ")), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        body.send_trailers(trailers).unwrap();
    });
    let proxy = TlsProxy::start(&catalog(LIMIT, &upstream.url));
    Runtime::new().unwrap().block_on(async {
        let mut client = proxy.client(1 << 16).await;
        for (content_type, passed) in [("application/grpc", "x-tail"), ("text/plain", "")] {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-tail", "1".parse().unwrap());
            trailers.insert("x-forwarded-for", "1.2.3.4".parse().unwrap());
            let body = Full::new(Bytes::from_static(b"abc"));
            let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
            let request = Request::post("https://localhost/").header("content-type", content_type);
            let response = client.send_request(request.body(Box::pin(body)).unwrap()).await;
            let body = response.unwrap().into_body().collect().await.unwrap();
            assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
            assert_eq!(body.to_bytes(), passed);
        }
    });
}

/// Uploads that the upstream does not read stop their own streams, and no other stream of the
/// connection.
#[test]
fn stalled_uploads_leave_room_for_other_streams_of_the_client() {
    const STALLED: usize = 20;
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/stalled") {
            loop {
                std::thread::park();
            }
        }
        let length = call.read_body().len().to_string();
        call.send(&response("200 OK", "", &length));
        true
    });
    let proxy = TlsProxy::start(&catalog(LIMIT, &upstream.url));
    Runtime::new().unwrap().block_on(async {
        let mut client = proxy.client::<CountedBody>(1 << 16).await;
        let reads: Vec<_> = (0..STALLED).map(|_| Arc::new(AtomicUsize::new(0))).collect();
        let mut uploads = Vec::new();
        for read in &reads {
            let body = CountedBody { left: 1 << 30, read: Arc::clone(read) };
            let upload = Request::post("https://localhost/stalled").body(body).unwrap();
            uploads.push(tokio::spawn(client.send_request(upload)));
        }
        let sum = || reads.iter().map(|read| read.load(Ordering::SeqCst)).sum::<usize>();
        // Until nothing moves: each has filled its window, or that of the connection is full.
        let mut before = usize::MAX;
        while before != sum() {
            before = sum();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let body = CountedBody { left: 100_000, read: Arc::default() };
        let upload = Request::post("https://localhost/small").body(body).unwrap();
        let answer = tokio::time::timeout(SOON, client.send_request(upload)).await;
        let answer = answer.expect("other streams stop it").unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "100000");
        uploads.iter().for_each(tokio::task::JoinHandle::abort);
    });
}
