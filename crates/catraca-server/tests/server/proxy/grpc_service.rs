//! A gRPC service with the four kinds of calls, whose messages are texts, and its client.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use hyper::http;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tower::{Service, service_fn};

use super::h2_helpers::TlsProxy;

pub type Client = tonic::client::Grpc<Channel>;
type Texts = ReceiverStream<Result<String, Status>>;
type HttpFuture<R> = Pin<Box<dyn Future<Output = Result<R, Infallible>> + Send>>;

/// Messages that are texts.
#[derive(Clone, Copy, Default)]
pub struct TextCodec;

impl Codec for TextCodec {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
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
        Ok(Some(String::from_utf8(bytes.to_vec()).unwrap()))
    }
}

/// A server of the service, without TLS.
pub struct GrpcUpstream {
    pub url: String,
    /// The values of `te` that it got.
    pub te: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl GrpcUpstream {
    pub fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let within = runtime.enter();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("h2c://{}", incoming.local_addr().unwrap());
        let te = Arc::new(Mutex::new(Vec::new()));
        let service = TextService { te: Arc::clone(&te) };
        runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        drop(within);
        Self { url, te, _runtime: runtime }
    }
}

#[derive(Clone)]
struct TextService {
    te: Arc<Mutex<Vec<String>>>,
}

impl NamedService for TextService {
    const NAME: &'static str = "test.Texts";
}

impl Service<http::Request<tonic::body::Body>> for TextService {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = HttpFuture<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let te = request.headers().get("te").map_or("", |te| te.to_str().unwrap()).to_owned();
        self.te.lock().push(te);
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(TextCodec);
            Ok(match request.uri().path() {
                "/test.Texts/Unary" => grpc.unary(service_fn(unary), request).await,
                "/test.Texts/Join" => grpc.client_streaming(service_fn(join), request).await,
                "/test.Texts/Count" => grpc.server_streaming(service_fn(count), request).await,
                _ => grpc.streaming(service_fn(echo), request).await,
            })
        })
    }
}

/// Answers with the same text, or fails.
async fn unary(request: Request<String>) -> Result<Response<String>, Status> {
    let text = request.into_inner();
    if text == "forbidden" {
        // After the head, so that the status is a trailer.
        return Err(Status::permission_denied("not for you"));
    }
    Ok(Response::new(text))
}

/// Joins all texts.
async fn join(request: Request<Streaming<String>>) -> Result<Response<String>, Status> {
    let mut texts = request.into_inner();
    let mut all = String::new();
    while let Some(text) = texts.message().await? {
        all.push_str(&text);
    }
    Ok(Response::new(all))
}

/// Counts from zero, and ends with an error if the text says so.
async fn count(request: Request<String>) -> Result<Response<Texts>, Status> {
    let text = request.into_inner();
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let (most, fails) = match text.strip_suffix('!') {
            Some(most) => (most, true),
            None => (&*text, false),
        };
        for number in 0..most.parse::<u32>().unwrap() {
            if sender.send(Ok(number.to_string())).await.is_err() {
                return;
            }
        }
        if fails {
            let _ = sender.send(Err(Status::permission_denied("no more"))).await;
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// Answers each text as soon as it arrives.
async fn echo(request: Request<Streaming<String>>) -> Result<Response<Texts>, Status> {
    let mut texts = request.into_inner();
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok(Some(text)) = texts.message().await {
            if sender.send(Ok(text)).await.is_err() {
                return;
            }
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// A client of the service behind a proxy.
pub async fn client(proxy: Arc<TlsProxy>) -> Client {
    let connector = service_fn(move |_: http::Uri| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, io::Error>(TokioIo::new(proxy.connect().await?)) }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let mut client = Client::new(endpoint.connect_with_connector(connector).await.unwrap());
    client.ready().await.unwrap();
    client
}
