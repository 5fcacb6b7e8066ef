//! The layer over an application, whose settles may wait for the records.

use std::time::{Duration, Instant};

use catraca::tower::RateLimitLayer;
use catraca::{App, Catalog, Check, Engine, ManualClock};
use http::StatusCode;

use crate::helpers::{CLIENT, body_of, request, respond, send, send_to};

const CATALOG: &str = "
    [policy.login]
    by     = ['ip']
    window = '20 per 15m'
    cost   = { '401' = 5, default = 1 }
    ban    = [ { when = 'status == 401', after = '2 per 1m', for = '5m' } ]
";

#[tokio::test]
async fn an_application_checks_and_settles_the_requests_of_a_layer() {
    let clock = ManualClock::default();
    let engine = Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock.clone()).build();
    let app = App::local(engine).build();
    let layer = RateLimitLayer::new(app.clone(), "login").by_peer_address();
    let check = Check::new("login", [("ip", CLIENT)]);
    let left = async || app.peek(&check).await.unwrap().remaining;
    for expected in [Some(15), Some(0)] {
        let response = send_to(&layer, request(), || respond(401, "wrong")).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        body_of(response).await;
        let begun = Instant::now();
        // The settle may be a task of the runtime. A banned caller has nothing left.
        while left().await != expected {
            assert!(begun.elapsed() < Duration::from_secs(30), "not settled: {:?}", left().await);
            tokio::task::yield_now().await;
        }
    }
    let banned = send(&layer, request()).await;
    assert_eq!(banned.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(banned.headers()["retry-after"], "300");
    clock.advance(Duration::from_secs(15 * 60));
    assert_eq!(send(&layer, request()).await.status(), StatusCode::OK);
}
