//! Requests whose clients have gone, and which go on because a rule reads their responses.

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::http::Request;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::h2_helpers::TlsProxy;
use super::helpers::{ProxyServer, SOON, TestUpstream, catalog, response, wait_until};

const BANNING: &str = "window = '9999 per 1m'\nban = [{ when = 'body.x == 5', for = '1m' }]";

/// One client that opens and cancels requests must not get all connections to the upstream.
#[test]
fn cancelled_requests_of_one_address_have_a_bound() {
    const REQUESTS: usize = 300;
    const BOUND: usize = 200;
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/silent") {
            return !call.is_closed_by_peer();
        }
        call.send(&response("200 OK", "", "ok"));
        true
    });
    let url = &upstream.url;
    let text = format!(
        "[policy.open]\nby = ['ip']\nwindow = '9999 per 1m'\n\
         [[route]]\nmatch = '/open'\ngate = 'open'\nupstream = '{url}'\n"
    );
    let proxy = TlsProxy::start(&(text + &catalog(BANNING, &upstream)));
    Runtime::new().unwrap().block_on(async {
        let mut client = proxy.client::<Empty<Bytes>>(1 << 16).await;
        let mut refused = 0;
        for _ in 0..REQUESTS {
            let before = upstream.connections();
            let request = Request::get("https://localhost/silent").body(Empty::new()).unwrap();
            let answer = client.send_request(request);
            let arrived = async {
                while upstream.connections() == before {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let answer = timeout(SOON, async {
                tokio::select! {
                    answer = answer => Some(answer.unwrap().status()),
                    () = arrived => None,
                }
            });
            if let Some(status) = answer.await.unwrap() {
                assert_eq!(status, 429);
                refused += 1;
            }
            // The request is dropped here, which resets its stream.
        }
        assert!(upstream.connections() <= BOUND, "{} connections", upstream.connections());
        assert!(refused >= REQUESTS - BOUND, "{refused} refused");
        // Requests that end with their client pass.
        let request = Request::get("https://localhost/open").body(Empty::new()).unwrap();
        assert_eq!(client.send_request(request).await.unwrap().status(), 200);
    });
}

#[test]
fn a_stream_without_an_end_is_not_read_for_longer_than_its_check_holds() {
    let (closed, ends) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        call.send(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
             transfer-encoding: chunked\r\n\r\n",
        );
        while call.try_send_bytes(b"8\r\n: ping\n\n\r\n") {
            std::thread::sleep(Duration::from_millis(10));
        }
        closed.send(()).unwrap();
        false
    });
    let policy = "bucket = { size = 1000, refill = '1 per 1h' }\nreserve = 100\nhold = '2s'\n\
                  cost = { from = 'body.usage.total_tokens' }";
    let server = ProxyServer::start(&catalog(policy, &upstream));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    client.read_until(": ping");
    drop(client);
    assert!(ends.recv_timeout(SOON).is_ok(), "the stream is still read");
    wait_until("no request is left", || abandoned(&server) == 0);
    // It keeps what was held.
    assert_eq!(server.remaining("site"), 900);
}

fn abandoned(server: &ProxyServer) -> u64 {
    server.metric("catraca_proxy_abandoned_requests")
}

/// The outcome says that the client has gone, whether the response is held back for the rules, is
/// passed on, or has no body.
#[test]
fn the_outcome_says_that_the_client_has_gone() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        wait.lock().unwrap().recv().unwrap();
        let body = if call.line().contains("/empty") { "" } else { "{\"x\":5}" };
        call.send(&response("200 OK", "content-type: application/json\r\n", body));
        false
    });
    let gone = "headers[\"catraca-ended\"] == \"client-gone\"";
    for (path, rule) in [("/", "body.x == 5"), ("/empty", "!body_truncated")] {
        for more in ["", ", status = 400"] {
            let ban = format!("{{ when = '{gone} && {rule}', for = '1m'{more} }}");
            let policy = format!("window = '9999 per 1m'\nban = [{ban}]");
            let server = ProxyServer::start(&catalog(&policy, &upstream));
            let mut client = server.connect();
            client.send(&format!("GET {path}"), &[], b"");
            server.wait_for_remaining("site", 9_998);
            drop(client);
            wait_until("the server sees it", || abandoned(&server) == 1);
            open.send(()).unwrap();
            wait_until("the rule has banned", || !server.peek("site").allowed);
        }
    }
}
