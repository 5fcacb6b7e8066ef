//! Limits a gRPC service of tonic: a tenant may place three orders in ten seconds, and one that
//! calls without credentials twice in a minute is banned for five minutes.
//!
//! The service and its codec are what `tonic-build` would generate, with texts as messages, so that
//! the example needs no protoc.
//!
//! `cargo run -p catraca --features cel,tower --example grpc_service`

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use catraca::tower::RateLimitLayer;
use catraca::{Catalog, Engine};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

const CATALOG: &str = r#"
[policy.orders]
by     = ["tenant"]
window = "3 per 10s"
ban    = [ { when = "status == 401", after = "2 per 1m", for = "5m" } ]   # UNAUTHENTICATED
"#;

/// Serves orders on a free port of the loopback address.
fn serve(engine: Engine) -> Result<SocketAddr, Box<dyn std::error::Error>> {
    let limit = RateLimitLayer::new(engine, "orders").by_header("tenant", "x-tenant").grpc();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let server = Server::builder().layer(limit).add_service(OrdersServer);
    tokio::spawn(server.serve_with_incoming(incoming));
    Ok(address)
}

/// Responds `UNAUTHENTICATED` to calls without credentials.
async fn place_order(request: Request<String>) -> Result<Response<String>, Status> {
    if request.metadata().get("authorization").is_none() {
        return Err(Status::unauthenticated("no credentials"));
    }
    Ok(Response::new(format!("ordered {}", request.into_inner())))
}

/// The server of the service `shop.Orders`, with one method.
#[derive(Clone)]
struct OrdersServer;

impl NamedService for OrdersServer {
    const NAME: &'static str = "shop.Orders";
}

impl Service<http::Request<Body>> for OrdersServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path() != "/shop.Orders/Place" {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let mut server = tonic::server::Grpc::new(TextCodec);
            Ok(server.unary(service_fn(place_order), request).await)
        })
    }
}

/// Messages that are texts.
#[derive(Clone, Copy)]
struct TextCodec;

impl Codec for TextCodec {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for TextCodec {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for TextCodec {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        let text = String::from_utf8(bytes.into());
        text.map(Some).map_err(|_| Status::invalid_argument("the message is not UTF-8"))
    }
}

/// Places an order, as a client of the service does.
async fn order(server: SocketAddr, metadata: &[(&'static str, &str)]) -> Result<String, Status> {
    let unavailable = |error: tonic::transport::Error| Status::unavailable(error.to_string());
    let endpoint = Endpoint::try_from(format!("http://{server}")).map_err(unavailable)?;
    let channel = endpoint.connect().await.map_err(unavailable)?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(unavailable)?;
    let mut request = Request::new("a book".to_owned());
    for (name, value) in metadata {
        let value = MetadataValue::try_from(*value);
        let value = value.map_err(|error| Status::invalid_argument(error.to_string()))?;
        request.metadata_mut().insert(*name, value);
    }
    let path = PathAndQuery::from_static("/shop.Orders/Place");
    Ok(client.unary(request, path, TextCodec).await?.into_inner())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = serve(Engine::new(Catalog::parse(CATALOG)?))?;
    for _ in 0..4 {
        println!("{:?}", order(server, &[("x-tenant", "acme"), ("authorization", "x")]).await);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use catraca::ManualClock;
    use tonic::Code;

    use super::*;

    const ACME: [(&str, &str); 2] = [("x-tenant", "acme"), ("authorization", "x")];

    fn serve_at(clock: &ManualClock) -> Result<SocketAddr, Box<dyn std::error::Error>> {
        serve(Engine::builder(Catalog::parse(CATALOG)?).clock(clock.clone()).build())
    }

    /// The milliseconds after which a client of gRPC tries again.
    fn pushback(status: &Status) -> Option<&str> {
        status.metadata().get("grpc-retry-pushback-ms")?.to_str().ok()
    }

    #[tokio::test]
    async fn calls_over_the_limit_are_exhausted() -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let server = serve_at(&clock)?;
        for _ in 0..3 {
            assert_eq!(order(server, &ACME).await?, "ordered a book");
        }
        clock.advance(Duration::from_millis(2_500));
        let denied = order(server, &ACME).await.unwrap_err();
        assert_eq!((denied.code(), pushback(&denied)), (Code::ResourceExhausted, Some("7500")));
        let missing = order(server, &ACME[1..]).await.unwrap_err();
        assert_eq!((missing.code(), pushback(&missing)), (Code::InvalidArgument, None));
        Ok(())
    }

    #[tokio::test]
    async fn the_status_of_a_call_is_its_outcome() -> Result<(), Box<dyn std::error::Error>> {
        let server = serve_at(&ManualClock::default())?;
        for _ in 0..2 {
            let refused = order(server, &ACME[..1]).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
        }
        let banned = order(server, &ACME).await.unwrap_err();
        assert_eq!((banned.code(), pushback(&banned)), (Code::ResourceExhausted, Some("300000")));
        Ok(())
    }
}
