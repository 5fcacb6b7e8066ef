//! Requests that run when the server stops: they are settled before it has stopped.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use super::helpers::{ProxyServer, TestUpstream, catalog, wait_until};

/// A rule reads the body, so that the request runs on without its client.
const BODY_RULE: &str = "bucket = { size = 1000, refill = '1 per 1h' }\nreserve = 1\n\
    cost = { '503' = 50, '200' = 2, default = 300 }\nban = [{ when = 'body.x == 1', for = '1h' }]";

#[test]
fn a_request_whose_body_is_read_by_rules_ends_with_the_server() {
    for is_begun in [false, true] {
        for hangs_up in [false, true] {
            let (began, beginnings) = mpsc::channel();
            let upstream = TestUpstream::start(move |call| {
                if is_begun {
                    call.send(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                         content-length: 9\r\n\r\n{",
                    );
                }
                began.send(()).unwrap();
                call.is_closed_by_peer();
                false
            });
            let mut server = ProxyServer::start(&catalog(BODY_RULE, &upstream));
            let mut client = server.connect();
            client.send("GET /", &[], b"");
            beginnings.recv().unwrap();
            if is_begun {
                client.read_head();
            }
            if hangs_up {
                drop(client);
            }
            server.stop.notify_one();
            wait_until("the server stops", || server.context.connections.is_draining());
            // The second signal closes connections without waiting for responses.
            server.stop();
            assert_eq!(server.left_open.load(Ordering::SeqCst), 0, "{is_begun} {hangs_up}");
            let left = if is_begun { 998 } else { 950 };
            assert_eq!(server.remaining("site"), left, "{is_begun} {hangs_up}");
        }
    }
}
