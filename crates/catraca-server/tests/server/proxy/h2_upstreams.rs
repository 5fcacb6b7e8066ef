//! Upstreams that speak HTTP/2: streams that share a connection, limits, refusals and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::Reason;
use http_body_util::{BodyExt, Full};
use hyper::http::{Request, Response};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::h2_helpers::{H2TestUpstream, TlsProxy, answer, catalog, read_body};
use super::helpers::{ProxyServer, SOON, TestUpstream, wait_until};

const LIMIT: &str = "window = '9999 per 1m'";
const STREAMS_MAX: u32 = 100;

/// An upstream that answers with the length of the request's body.
fn lengths() -> H2TestUpstream {
    H2TestUpstream::start(STREAMS_MAX, |(request, mut respond)| async move {
        let length = read_body(&mut request.into_body()).await.len();
        answer(&mut respond, &length.to_string());
    })
}

#[test]
fn clients_of_http1_reach_an_upstream_of_http2() {
    let upstream = H2TestUpstream::start(STREAMS_MAX, |(request, mut respond)| async move {
        let (head, mut body) = request.into_parts();
        let length = read_body(&mut body).await.len();
        let header = |name| head.headers.get(name).map_or("none", |own| own.to_str().unwrap());
        let text = format!(
            "{} {} {:?} {} host={} chunked={} for={}",
            head.method,
            head.uri,
            head.version,
            length,
            header("host"),
            header("transfer-encoding"),
            header("x-forwarded-for"),
        );
        answer(&mut respond, &text);
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream.url));
    let mut client = server.connect();
    client.send("POST /a//b?c=1", &[], b"body");
    let expected = "POST http://localhost/a/b?c=1 HTTP/2.0 4 host=none chunked=none for=127.0.0.1";
    assert_eq!(client.read_response().body, expected);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send_bytes(format!("{head}3\r\nabc\r\n0\r\n\r\n").as_bytes());
    assert!(client.read_response().body.starts_with("POST http://a/ HTTP/2.0 3 "));
    client.send("GET /", &[], b"");
    assert!(client.read_response().body.starts_with("GET http://localhost/ HTTP/2.0 0 "));
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn an_upgrade_needs_http1_and_a_server_that_speaks_it() {
    let upstream = lengths();
    let server = ProxyServer::start(&catalog(LIMIT, &upstream.url));
    let mut client = server.connect();
    client.send("GET /", &[("Upgrade", "websocket"), ("Connection", "upgrade")], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (501, "upstream-no-upgrade"));
    assert_eq!(upstream.connections(), 0);
    // A server of HTTP/1.1 sends no settings, and gets no request.
    let other = TestUpstream::start(|call| {
        assert!(call.line().starts_with("PRI"), "{}", call.head);
        call.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        false
    });
    let server = ProxyServer::start(&catalog(LIMIT, &other.url.replace("http:", "h2c:")));
    let mut client = server.connect();
    client.send("POST /", &[], b"body");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-unreachable"));
}

#[test]
fn many_requests_share_one_connection() {
    let all = Arc::new(tokio::sync::Barrier::new(60));
    let upstream = H2TestUpstream::start(STREAMS_MAX, move |(_, mut respond)| {
        let all = Arc::clone(&all);
        async move {
            // No request ends before all of them have begun.
            all.wait().await;
            answer(&mut respond, "together");
        }
    });
    let proxy = TlsProxy::start(&catalog("inflight = 60\nhold = '10m'", &upstream.url));
    Runtime::new().unwrap().block_on(async {
        let client = proxy.client::<Full<Bytes>>(1 << 16).await;
        for _ in 0..3 {
            let calls = (0..60).map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    let request = Request::post("https://localhost/").body(Full::from("x"));
                    let response = client.send_request(request.unwrap()).await.unwrap();
                    response.into_body().collect().await.unwrap().to_bytes()
                })
            });
            for call in calls.collect::<Vec<_>>() {
                assert_eq!(call.await.unwrap(), "together");
            }
        }
    });
    assert_eq!(upstream.connections(), 1);
    proxy.server.wait_for_remaining("site", 60);
}

#[test]
fn requests_above_the_limit_of_the_upstream_wait_in_their_order() {
    let (began, mut beginnings) = mpsc::unbounded_channel();
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&open);
    let upstream = H2TestUpstream::start(2, move |(request, mut respond)| {
        began.send(request.uri().path().to_owned()).unwrap();
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            answer(&mut respond, "ok");
        }
    });
    let more = "[proxy]\nconnections_max = 1\nconnect_timeout = '30s'\n";
    let server = ProxyServer::start(&(catalog("window = '99 per 1m'", &upstream.url) + more));
    let mut clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("GET /{number}"), &[], b"");
        // Checked, so that it waits for a stream before the next one comes.
        server.wait_for_remaining("site", 98 - i64::try_from(number).unwrap());
        if number < 2 {
            assert_eq!(beginnings.blocking_recv().unwrap(), format!("/{number}"));
        }
    }
    assert!(beginnings.try_recv().is_err(), "more requests than the upstream allows");
    for (number, client) in clients.iter_mut().enumerate() {
        open.add_permits(1);
        if number < 3 {
            assert_eq!(beginnings.blocking_recv().unwrap(), format!("/{}", number + 2));
        }
        if number == 4 {
            assert_eq!(client.read_response().status, 200);
        }
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_request_that_waits_too_long_for_a_stream_gets_a_503() {
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&open);
    let upstream = H2TestUpstream::start(1, move |(_, mut respond)| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            answer(&mut respond, "ok");
        }
    });
    let more = "[proxy]\nconnections_max = 1\nconnect_timeout = '3s'\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream.url) + more));
    let mut first = server.connect();
    first.send("GET /", &[], b"");
    wait_until("the upstream has a connection", || upstream.connections() == 1);
    let mut second = server.connect();
    second.send("GET /", &[], b"");
    let busy = second.read_response();
    assert_eq!((busy.status, busy.problem_code().as_str()), (503, "upstream-busy"));
    open.add_permits(2);
    assert_eq!(first.read_response().status, 200);
    second.send("GET /", &[], b"");
    assert_eq!(second.read_response().status, 200);
    let series = "catraca_proxy_upstream_failures_total{cause=\"busy\"}";
    assert_eq!(server.metric(series), 1);
}

#[test]
fn a_refused_request_is_sent_again_if_its_body_is_still_there() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let upstream = H2TestUpstream::start(STREAMS_MAX, move |(request, mut respond)| {
        let is_first = counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        async move {
            let mut body = request.into_body();
            let length = read_body(&mut body).await.len();
            match is_first {
                true => respond.send_reset(Reason::REFUSED_STREAM),
                false => answer(&mut respond, &length.to_string()),
            }
        }
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream.url));
    let mut client = server.connect();
    client.send("POST /", &[], &[b'x'; 1_000]);
    assert_eq!(client.read_response().body, "1000");
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().body, "0");
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    // More than the proxy keeps.
    client.send("POST /", &[], &[b'x'; 200_000]);
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-broken"));
    assert_eq!(calls.load(Ordering::SeqCst), 5);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn an_upstream_that_refuses_every_request_is_busy() {
    let upstream = H2TestUpstream::start(STREAMS_MAX, |(_, mut respond)| async move {
        respond.send_reset(Reason::REFUSED_STREAM);
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream.url));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (503, "upstream-busy"));
}

#[test]
fn a_goaway_under_load_loses_and_repeats_no_request() {
    const CLIENTS: usize = 8;
    const CALLS: usize = 150;
    let executed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executed);
    let upstream = Arc::new(H2TestUpstream::start(STREAMS_MAX, move |(request, mut respond)| {
        let counted = Arc::clone(&counted);
        async move {
            let length = read_body(&mut request.into_body()).await.len();
            counted.fetch_add(1, Ordering::SeqCst);
            answer(&mut respond, &length.to_string());
        }
    }));
    let server = Arc::new(ProxyServer::start(&catalog(LIMIT, &upstream.url)));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                for call in 0..CALLS {
                    client.send("POST /", &[], b"body");
                    let answer = client.read_response();
                    assert_eq!((answer.status, answer.body.as_str()), (200, "4"), "{call}");
                }
            });
        }
        scope.spawn(|| {
            for round in 1..10 {
                let enough = CLIENTS * CALLS * round / 10;
                wait_until("more requests", || executed.load(Ordering::SeqCst) >= enough);
                upstream.go_away();
            }
        });
    });
    assert_eq!(executed.load(Ordering::SeqCst), CLIENTS * CALLS);
    assert!(upstream.connections() > 1);
}

#[test]
fn a_killed_upstream_ends_its_requests_and_each_is_settled() {
    let mut upstream = H2TestUpstream::start(STREAMS_MAX, |(request, mut respond)| async move {
        if request.uri().path() == "/silent" {
            std::future::pending::<()>().await;
        }
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"begun"), false).unwrap();
        std::future::pending::<()>().await;
    });
    let server = ProxyServer::start(&catalog("inflight = 20\nhold = '10m'", &upstream.url));
    let mut silent: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for client in &mut silent {
        client.send("POST /silent", &[], b"body");
    }
    let mut begun: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for client in &mut begun {
        client.send("GET /", &[], b"");
        assert!(client.read_head().starts_with("HTTP/1.1 200"));
    }
    server.wait_for_remaining("site", 0);
    upstream.kill();
    for client in &mut silent {
        let answer = client.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-broken"));
    }
    for client in &mut begun {
        assert!(!client.read_to_end().ends_with("0\r\n\r\n"));
    }
    server.wait_for_remaining("site", 20);
    let mut client = server.connect();
    client.send("POST /", &[], b"body");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-unreachable"));
}

#[test]
fn a_client_that_hangs_up_ends_the_stream_alone() {
    let reset = Arc::new(Notify::new());
    let noted = Arc::clone(&reset);
    let (began, mut beginnings) = mpsc::unbounded_channel();
    let upstream = H2TestUpstream::start(STREAMS_MAX, move |(request, mut respond)| {
        let noted = Arc::clone(&noted);
        began.send(()).unwrap();
        async move {
            if request.uri().path() == "/left" {
                let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await.unwrap();
                assert_eq!(reason, Reason::CANCEL);
                noted.notify_one();
            } else {
                answer(&mut respond, "ok");
            }
        }
    });
    let server = ProxyServer::start(&catalog("inflight = 1\nhold = '10m'", &upstream.url));
    for request in ["GET /left HTTP/1.1\r\n", "POST /left HTTP/1.1\r\nContent-Length: 9\r\n"] {
        let mut client = server.connect();
        client.send_bytes(format!("{request}Host: a\r\n\r\n").as_bytes());
        beginnings.blocking_recv().unwrap();
        assert_eq!(server.remaining("site"), 0);
        drop(client);
        let runtime = Runtime::new().unwrap();
        let noted = runtime.block_on(async { tokio::time::timeout(SOON, reset.notified()).await });
        assert!(noted.is_ok(), "the stream was not reset: {request}");
        server.wait_for_remaining("site", 1);
    }
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().body, "ok");
    assert_eq!(upstream.connections(), 1);
}
