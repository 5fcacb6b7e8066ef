//! An engine with a manual clock, and services and requests for it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use catraca::tower::{LimitedBody, PeerAddr, RateLimitLayer};
use catraca::{Catalog, Check, Engine, Limiter, ManualClock};
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

pub const CLIENT: &str = "198.51.100.7";

/// The response of a limited service with a whole body.
pub type FullResponse = Response<LimitedBody<Full<Bytes>>>;

pub fn engine(catalog: &str) -> (Arc<Engine>, ManualClock) {
    let clock = ManualClock::default();
    let catalog = Catalog::parse(catalog).unwrap();
    (Arc::new(Engine::builder(catalog).clock(clock.clone()).build()), clock)
}

/// A request from the client's address.
pub fn request() -> Request<()> {
    request_from(CLIENT)
}

pub fn request_from(address: &str) -> Request<()> {
    let peer = PeerAddr((address.parse::<std::net::IpAddr>().unwrap(), 50_000).into());
    Request::get("/").extension(peer).body(()).unwrap()
}

/// Sends one request to a service that responds 200 with `hello`.
pub async fn send<L>(layer: &RateLimitLayer<L>, request: Request<()>) -> FullResponse
where
    L: Limiter + 'static,
{
    send_to(layer, request, || Response::new(Full::from("hello"))).await
}

/// Sends one request to a service with this response.
pub async fn send_to<L, R>(
    layer: &RateLimitLayer<L>,
    request: Request<()>,
    respond: impl Fn() -> Response<R> + Clone,
) -> Response<LimitedBody<R>>
where
    L: Limiter + 'static,
    R: Body<Data = Bytes>,
{
    let service = service_fn(move |_: Request<()>| {
        let response = respond();
        async move { Ok::<_, Infallible>(response) }
    });
    call(layer, service, request).await.unwrap()
}

/// Calls a service once, through the layer.
pub async fn call<L, S, R>(
    layer: &RateLimitLayer<L>,
    service: S,
    request: Request<()>,
) -> Result<Response<LimitedBody<R>>, S::Error>
where
    L: Limiter + 'static,
    S: Service<Request<()>, Response = Response<R>> + Clone,
    R: Body<Data = Bytes>,
{
    layer.layer(service).oneshot(request).await
}

pub async fn body_of<B>(response: Response<B>) -> Bytes
where
    B: Body<Data = Bytes, Error = Infallible>,
{
    response.into_body().collect().await.unwrap().to_bytes()
}

pub async fn json_of<B>(response: Response<B>) -> serde_json::Value
where
    B: Body<Data = Bytes, Error = Infallible>,
{
    serde_json::from_slice(&body_of(response).await).unwrap()
}

pub fn header<'r, B>(response: &'r Response<B>, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

/// A response with a status and a whole body.
pub fn respond(status: u16, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// The free units of the client's key.
pub fn remaining(engine: &Engine, gate: &str) -> Option<i64> {
    engine.peek(&Check::new(gate, [("ip", CLIENT)])).unwrap().remaining
}
