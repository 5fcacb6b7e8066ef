//! Gates and attributes from the catalog's routes.

use std::sync::Arc;

use catraca::tower::RateLimitLayer;
use catraca::{Catalog, Check, Engine};
use http::{Request, StatusCode};

use crate::helpers::{CLIENT, engine, json_of, request, send};

const CATALOG: &str = r#"
default = "other"

[policy.orders]
by     = ["account", "tenant"]
window = "9 per 1m"

[policy.other]
by     = ["ip"]
window = "1 per 1m"

[[route]]
match = "POST /accounts/*/orders"
gate  = "orders"
set   = { account = "path:2", tenant = "query:t" }
"#;

fn layer(engine: &Arc<Engine>) -> RateLimitLayer<Arc<Engine>> {
    let rules = Arc::clone(engine);
    RateLimitLayer::with_routes(Arc::clone(engine), move || rules.catalog()).by_peer_address()
}

fn post(target: &str) -> Request<()> {
    let mut request = request();
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = target.parse().unwrap();
    request
}

#[tokio::test]
async fn a_route_chooses_the_gate_and_reads_attributes() {
    let (engine, _clock) = engine(CATALOG);
    let layer = layer(&engine);
    send(&layer, post("/accounts/7/orders?t=acme")).await;
    send(&layer, post("/accounts/%37/orders/?t=acme")).await;
    let check = Check::new("orders", [("account", "7"), ("tenant", "acme")]);
    assert_eq!(engine.peek(&check).unwrap().remaining, Some(7));
    let twice = send(&layer, post("/accounts/7/orders?t=acme&t=other")).await;
    assert_eq!(twice.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(twice).await["code"], "ambiguous-request");
}

#[tokio::test]
async fn a_request_without_a_route_has_the_default_policy() {
    let (engine, _clock) = engine(CATALOG);
    let layer = layer(&engine);
    assert_eq!(send(&layer, post("/")).await.status(), StatusCode::OK);
    assert_eq!(send(&layer, post("/x")).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!engine.peek(&Check::new("other", [("ip", CLIENT)])).unwrap().allowed);
    engine.reload(Catalog::parse(&CATALOG.replace("1 per 1m", "2 per 1m")).unwrap());
    assert_eq!(send(&layer, post("/x")).await.status(), StatusCode::OK, "after a reload");
}

#[tokio::test]
async fn a_route_cannot_replace_an_attribute_of_the_layer() {
    let (engine, _clock) = engine(CATALOG);
    let layer = layer(&engine).by("tenant", |_: &http::request::Parts| Some("acme".to_owned()));
    send(&layer, post("/accounts/7/orders?t=other")).await;
    let check = Check::new("orders", [("account", "7"), ("tenant", "acme")]);
    assert_eq!(engine.peek(&check).unwrap().remaining, Some(8));
}
