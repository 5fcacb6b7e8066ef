//! Limits a gRPC service. The layer works with any service of HTTP requests, so also with a server
//! of tonic: `Server::builder().layer(limit)`. Here, the service is a function.
//!
//! `cargo run -p catraca --features tower --example grpc_service`

use std::convert::Infallible;

use bytes::Bytes;
use catraca::tower::RateLimitLayer;
use catraca::{Catalog, Engine};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

const CATALOG: &str = r#"
[policy.orders]
by     = ["tenant"]
window = "3 per 10s"
ban    = [ { when = "status == 401", after = "2 per 1m", for = "5m" } ]   # UNAUTHENTICATED
"#;

/// The body of a gRPC response: its message, and its trailers.
type GrpcBody = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

fn limit(engine: Engine) -> RateLimitLayer<Engine> {
    RateLimitLayer::new(engine, "orders").by_header("tenant", "x-tenant").grpc()
}

/// Responds `UNAUTHENTICATED` to calls without credentials.
async fn place_order(request: Request<()>) -> Result<Response<GrpcBody>, Infallible> {
    let is_known = request.headers().contains_key("authorization");
    let status = HeaderValue::from_static(if is_known { "0" } else { "16" });
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status);
    let trailers = std::future::ready(Some(Ok(trailers)));
    Ok(Response::new(Full::from("message").with_trailers(trailers).boxed_unsync()))
}

/// Calls the service, and returns the gRPC status with the pushback in milliseconds.
async fn call_service<S, B>(service: S, request: Request<()>) -> Option<(String, Option<String>)>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let response = service.oneshot(request).await.ok()?;
    let (head, body) = response.into_parts();
    let collected = body.collect().await.ok()?;
    let trailers = collected.trailers().unwrap_or(&head.headers);
    let text = |name: &str| Some(trailers.get(name)?.to_str().ok()?.to_owned());
    Some((text("grpc-status")?, text("grpc-retry-pushback-ms")))
}

fn call(tenant: &'static str) -> Request<()> {
    let mut request = Request::new(());
    let headers = request.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("authorization", HeaderValue::from_static("Bearer x"));
    headers.insert("x-tenant", HeaderValue::from_static(tenant));
    request
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = limit(Engine::new(Catalog::parse(CATALOG)?));
    let service = limit.layer(service_fn(place_order));
    for _ in 0..4 {
        println!("{:?}", call_service(service.clone(), call("acme")).await);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use catraca::{ManualClock, Span};

    use super::*;

    fn answer(status: &str, pushback: Option<&str>) -> Option<(String, Option<String>)> {
        Some((status.to_owned(), pushback.map(str::to_owned)))
    }

    #[tokio::test]
    async fn calls_over_the_limit_are_exhausted() -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let engine = Engine::builder(Catalog::parse(CATALOG)?).clock(clock.clone()).build();
        let service = limit(engine).layer(service_fn(place_order));
        for _ in 0..3 {
            assert_eq!(call_service(service.clone(), call("acme")).await, answer("0", None));
        }
        clock.advance(Span::from_millis(2_500));
        let denied = call_service(service.clone(), call("acme")).await;
        assert_eq!(denied, answer("8", Some("7500")), "RESOURCE_EXHAUSTED");
        let missing = call_service(service.clone(), {
            let mut request = call("acme");
            request.headers_mut().remove("x-tenant");
            request
        });
        assert_eq!(missing.await, answer("3", None), "INVALID_ARGUMENT");
        Ok(())
    }

    #[tokio::test]
    async fn the_status_of_a_call_is_its_outcome() -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let engine = Engine::builder(Catalog::parse(CATALOG)?).clock(clock).build();
        let service = limit(engine).layer(service_fn(place_order));
        for _ in 0..2 {
            let mut request = call("acme");
            request.headers_mut().remove("authorization");
            assert_eq!(call_service(service.clone(), request).await, answer("16", None));
        }
        let banned = call_service(service, call("acme")).await;
        assert_eq!(banned, answer("8", Some("300000")), "two are a ban of five minutes");
        Ok(())
    }
}
