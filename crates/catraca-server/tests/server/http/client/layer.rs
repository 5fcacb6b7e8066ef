//! The tower layer over a client of a real server, as a program that shares its limits uses it.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use catraca::tower::{PeerAddr, RateLimitLayer};
use catraca::{Check, Client};
use http_body_util::{BodyExt, Full};
use hyper::http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};

use super::{CATALOG, PATIENCE, builder, client};
use crate::raw_connection::RawConnection;
use crate::test_server::TestServer;

/// The example that is compiled as a program of its own, too.
#[expect(dead_code, reason = "the test does not start its `main`")]
#[path = "../../../../../catraca/examples/axum_shared.rs"]
mod axum_shared;

/// The lines that a program needs beyond its own routes.
const GLUE_MAX: usize = 10;

#[tokio::test]
async fn two_processes_share_one_limit_with_ten_lines_of_glue() {
    let server = TestServer::with_catalog(CATALOG);
    let mut programs = Vec::new();
    for _ in 0..2 {
        let application = axum_shared::application(builder(&server.address)).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        programs.push(listener.local_addr().unwrap().to_string());
        let service = application.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
    }
    let get = |address: String| async move {
        let answer = tokio::task::spawn_blocking(move || {
            let mut connection = RawConnection::open(&address);
            connection.send("GET /", &[], b"");
            connection.read_response()
        });
        answer.await.unwrap()
    };
    for program in &programs {
        let answer = get(program.clone()).await;
        assert_eq!((answer.status, &*answer.body), (200, "welcome\n"));
    }
    for program in programs {
        let denied = get(program).await;
        assert_eq!(denied.status, 429, "two of the limit are used: {denied:?}");
        assert_eq!(denied.header("retry-after"), Some("900"));
    }
    let callers = server.request("GET /v1/stats/callers", &[]).json();
    assert_eq!(callers["callers"][0]["caller"], "axum-shared/1");

    let lines = count_glue(include_str!("../../../../../catraca/examples/axum_shared.rs"));
    assert!((1..=GLUE_MAX).contains(&lines), "{lines} lines of glue");
    let readme = include_str!("../../../../../../examples/axum/README.md");
    assert!(readme.contains(&format!("with {lines} lines of glue")), "{lines} lines of glue");
}

/// Counts by the rule of `examples/README.md`.
fn count_glue(source: &str) -> usize {
    let mut is_inside = false;
    let mut count = 0;
    for line in source.lines().map(str::trim) {
        match line {
            "// glue: begin" => is_inside = true,
            "// glue: end" => is_inside = false,
            _ if line.is_empty() || line.starts_with("//") => {}
            _ if is_inside || line.contains("catraca") => count += 1,
            _ => {}
        }
    }
    count
}

async fn send(layer: &RateLimitLayer<Client>, status: u16) -> Response<()> {
    let service = service_fn(move |_: Request<()>| async move {
        let mut response = Response::new(Full::<Bytes>::from("found"));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Ok::<_, Infallible>(response)
    });
    let peer = PeerAddr(([198, 51, 100, 7], 50_000).into());
    let request = Request::get("/").extension(peer).header("x-payer", "a").body(()).unwrap();
    let response = layer.layer(service).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    body.collect().await.unwrap();
    Response::from_parts(head, ())
}

#[tokio::test]
async fn a_response_settles_its_check_on_the_server() {
    let server = TestServer::with_catalog(CATALOG);
    let client = client(&server);
    let layer = RateLimitLayer::new(client.clone(), "lookup").by_header("payer", "x-payer");
    assert_eq!(send(&layer, 404).await.status(), 404);
    let lookup = Check::new("lookup", [("payer", "a")]).cost(0);
    let begun = std::time::Instant::now();
    // The settle is a task of the runtime, which the response does not wait for.
    while client.peek(&lookup).await.unwrap().remaining != Some(1_000_000 - 20) {
        assert!(begun.elapsed() < PATIENCE, "the response was not settled");
    }
}

#[tokio::test]
async fn without_a_server_requests_get_503_and_are_not_served() {
    let server = TestServer::with_catalog(CATALOG);
    let layer = RateLimitLayer::new(client(&server), "login").by_peer_address();
    assert_eq!(send(&layer, 200).await.status(), 200);
    drop(server); // kills the process
    let failed = send(&layer, 200).await;
    assert_eq!(failed.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(failed.headers()["retry-after"], "1");
}
