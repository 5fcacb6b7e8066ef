//! Upstreams of HTTP/2 whose every frame a test decides, and clients of HTTP/2 with TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::helpers::ProxyServer;
use crate::http::tls::certificate;
use crate::test_server::catalog_file;

/// A request that an upstream has got, and the means to answer it.
pub type Call = (Request<RecvStream>, SendResponse<Bytes>);

/// An upstream of HTTP/2 without TLS. Every request is a task, which runs the handler.
pub struct H2TestUpstream {
    pub url: String,
    connections: Arc<AtomicUsize>,
    /// Counts the times at which all connections get a `GOAWAY`.
    rounds: watch::Sender<u64>,
    runtime: Option<Runtime>,
}

impl H2TestUpstream {
    /// An upstream that takes so many requests of a connection at once.
    pub fn start<F, A>(streams_max: u32, handler: F) -> Self
    where
        F: Fn(Call) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("h2c://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let (rounds, round) = watch::channel(0);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                let served = serve(stream, streams_max, handler.clone(), round.clone());
                tokio::spawn(served);
            }
        });
        Self { url, connections, rounds, runtime: Some(runtime) }
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Sends a `GOAWAY` on all connections. Requests that have begun go on.
    pub fn go_away(&self) {
        self.rounds.send_modify(|round| *round += 1);
    }

    /// Closes its port and all connections at once.
    pub fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for H2TestUpstream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve<F, A>(
    stream: TcpStream,
    streams_max: u32,
    handler: F,
    mut round: watch::Receiver<u64>,
) where
    F: Fn(Call) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    round.mark_unchanged();
    let stream = stream.into_std().unwrap();
    let lingering = stream.try_clone().unwrap();
    let stream = TcpStream::from_std(stream).unwrap();
    let mut builder = Builder::new();
    builder.max_concurrent_streams(streams_max);
    let Ok(mut connection): Result<Connection<_, Bytes>, _> = builder.handshake(stream).await
    else {
        return;
    };
    loop {
        tokio::select! {
            call = connection.accept() => match call {
                Some(Ok(call)) => drop(tokio::spawn(handler(call))),
                _ => break,
            },
            Ok(()) = round.changed() => connection.graceful_shutdown(),
        }
    }
    // What is still under way is read: to close now would reset the connection, and the peer would
    // lose the last `GOAWAY`.
    let mut lingering = TcpStream::from_std(lingering).unwrap();
    let _ = tokio::io::copy(&mut lingering, &mut tokio::io::sink()).await;
}

/// Answers a request with a status 200 and a text.
pub fn answer(respond: &mut SendResponse<Bytes>, text: &str) {
    let head = Response::builder().header("content-length", text.len()).body(()).unwrap();
    let mut body = respond.send_response(head, false).unwrap();
    body.send_data(Bytes::copy_from_slice(text.as_bytes()), true).unwrap();
}

/// Reads a whole body, and lets the sender go on.
pub async fn read_body(body: &mut RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend(data);
    }
    bytes
}

/// A catalog whose only route goes to an upstream, with the fields of its policy.
pub fn catalog(policy: &str, url: &str) -> String {
    format!(
        "[policy.site]\nby = ['ip']\n{policy}\n[[route]]\nmatch = '/**'\ngate = 'site'\n\
         upstream = '{url}'\n"
    )
}

/// A proxy whose clients use TLS.
pub struct TlsProxy {
    pub server: ProxyServer,
    connector: TlsConnector,
}

impl TlsProxy {
    pub fn start(catalog: &str) -> Self {
        let settings = "[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";
        let file = catalog_file(&format!("{catalog}{settings}"));
        let folder = file.parent().unwrap();
        certificate(folder, "7");
        let connector = connector(folder);
        Self { server: ProxyServer::start_file(&file), connector }
    }

    /// A connection with TLS on which HTTP/2 was chosen.
    pub async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.server.address).await?;
        stream.set_nodelay(true)?;
        self.connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
    }

    /// A client with windows of this size.
    pub async fn client<B>(&self, window: u32) -> SendRequest<B>
    where
        B: hyper::body::Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = self.connect().await.unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

fn connector(folder: &Path) -> TlsConnector {
    let pem: PathBuf = folder.join("cert.pem");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsConnector::from(Arc::new(config))
}
