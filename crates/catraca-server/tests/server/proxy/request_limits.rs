//! The bound of the requests that one client has in progress.

use std::sync::{Mutex, mpsc};

use super::helpers::{ProxyServer, TestUpstream, catalog, response, wait_until};

const LIMIT: &str = "window = '9999 per 1m'";

/// An upstream that answers when the test says so.
fn silent() -> (mpsc::Sender<()>, mpsc::Receiver<()>, TestUpstream) {
    let (began, beginnings) = mpsc::channel();
    let (open, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        if call.line().contains("/quick") {
            call.send(&response("200 OK", "", "ok"));
            return true;
        }
        began.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        call.send(&response("200 OK", "", "ok"));
        true
    });
    (open, beginnings, upstream)
}

#[test]
fn a_client_cannot_have_all_connections_to_an_upstream() {
    let (open, beginnings, upstream) = silent();
    let text = catalog(LIMIT, &upstream) + "[proxy]\nrequests_per_client = 2\n";
    let server = ProxyServer::start(&text);
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        client.send("GET /", &[], b"");
        beginnings.recv().unwrap();
    }
    let mut third = server.connect();
    third.send("GET /quick", &[], b"");
    let refused = third.read_response();
    assert_eq!((refused.status, refused.problem_code().as_str()), (429, "too-many-open-requests"));
    assert_eq!(server.remaining("site"), 9_997, "it is refused before its check");
    open.send(()).unwrap();
    open.send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.read_response().status, 200);
    }
    wait_until("the responses have ended", || {
        third.send("GET /quick", &[], b"");
        third.read_response().status == 200
    });
}

#[test]
fn a_trusted_proxy_speaks_for_many_clients() {
    let (open, beginnings, upstream) = silent();
    let more = "[proxy]\nrequests_per_client = 1\n[network]\ntrusted_proxies = ['127.0.0.1']\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream) + more));
    let mut first = server.connect();
    first.send("GET /", &[("X-Forwarded-For", "192.0.2.1")], b"");
    beginnings.recv().unwrap();
    let mut second = server.connect();
    for (from, status) in [(Some("192.0.2.1"), 429), (Some("192.0.2.2"), 200), (None, 200)] {
        let headers: Vec<_> = from.map(|from| ("X-Forwarded-For", from)).into_iter().collect();
        second.send("GET /quick", &headers, b"");
        assert_eq!(second.read_response().status, status, "{from:?}");
    }
    open.send(()).unwrap();
    assert_eq!(first.read_response().status, 200);
}
