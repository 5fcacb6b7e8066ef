//! Clients that make the proxy work without end: their connections are closed, and the server goes
//! on with the others.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::h2_helpers::TlsProxy;
use super::h2_smuggling::{
    END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS,
};
use super::h2_smuggling::{fields, frame, frame_of};
use super::helpers::{ProxyServer, SOON, TestUpstream, catalog, response};

const LIMIT: &str = "window = '9999 per 1h'";
/// The error `ENHANCE_YOUR_CALM`.
const CALM: u32 = 0xb;
const CANCEL: u32 = 8;
/// Each is reset at once. They fit into one record of TLS, so that the proxy reads them in one go.
const RESET_REQUESTS: u32 = 100;

/// The code of the first `GOAWAY` of a connection whose client resets every request.
async fn goaway_code(proxy: &TlsProxy) -> u32 {
    let mut stream = proxy.connect().await.unwrap();
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
    let head = fields(&pseudo);
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, &[])].concat();
    for number in 0..RESET_REQUESTS {
        let id = 2 * number + 1;
        bytes.extend(frame_of(id, HEADERS, END_HEADERS | END_STREAM, &head));
        bytes.extend(frame_of(id, RST_STREAM, 0, &CANCEL.to_be_bytes()));
    }
    assert!(bytes.len() < 16 << 10);
    stream.write_all(&bytes).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == GOAWAY {
            return u32::from_be_bytes(payload[4..8].try_into().unwrap());
        }
    }
}

/// CVE-2023-44487: a request that is reset at once does not count as one in progress.
#[test]
fn a_flood_of_requests_that_are_reset_ends_the_connection() {
    let upstream = TestUpstream::start(|call| {
        call.send(&response("200 OK", "", "ok"));
        true
    });
    let proxy = TlsProxy::start(&catalog(LIMIT, &upstream));
    Runtime::new().unwrap().block_on(async {
        for _ in 0..3 {
            let code = timeout(SOON, goaway_code(&proxy)).await;
            assert_eq!(code.expect("the connection goes on"), CALM);
        }
        let body = http_body_util::Empty::<bytes::Bytes>::new();
        let request = hyper::http::Request::get("https://localhost/").body(body).unwrap();
        let mut client = proxy.client(1 << 16).await;
        assert_eq!(client.send_request(request).await.unwrap().status(), 200);
    });
}

#[test]
fn a_head_that_trickles_ends_its_connection() {
    let upstream = TestUpstream::start(|call| {
        call.send(&response("200 OK", "", "ok"));
        true
    });
    let settings = "[server]\nhead_timeout = '200ms'\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream) + settings));
    let mut slow = server.connect();
    slow.send_bytes(b"GET / HTTP/1.1\r\nHost: a\r\n");
    slow.set_read_timeout(Duration::from_millis(20));
    // The timeout is for the whole head: more lines do not extend it.
    let is_cut = (0..500).any(|number| {
        slow.try_send_bytes(format!("x-{number}: y\r\n").as_bytes()).is_err() || slow.is_closed()
    });
    assert!(is_cut);
    assert_eq!(server.remaining("site"), 9_999);
    let mut other = server.connect();
    other.send("GET /", &[], b"");
    assert_eq!(other.read_response().body, "ok");
}
