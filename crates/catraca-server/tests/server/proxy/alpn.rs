//! Upstreams with TLS, which choose HTTP/2 or HTTP/1.1 in the handshake.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::http::{Request, Response, StatusCode, header};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::h2_helpers::catalog;
use super::helpers::ProxyServer;
use crate::http::tls::certificate;
use crate::test_server::catalog_file;

/// An upstream with TLS that answers with the version of the request.
struct TlsUpstream {
    url: String,
    connections: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl TlsUpstream {
    fn start(folder: &Path, protocols: &[&[u8]]) -> Self {
        let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate], key);
        let mut config = config.unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(acceptor.clone(), stream));
            }
        });
        Self { url, connections, _runtime: runtime }
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    let service = service_fn(respond);
    // The end of a connection is no concern of a test.
    let _ = match is_h2 {
        true => http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await,
        false => http1::Builder::new().serve_connection(stream, service).with_upgrades().await,
    };
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::from(format!("{:?}", request.version())));
    if let Some(protocol) = request.headers().get(header::UPGRADE) {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.body_mut() = Full::default();
        response.headers_mut().insert(header::UPGRADE, protocol.clone());
        let connection = "upgrade".parse().unwrap();
        response.headers_mut().insert(header::CONNECTION, connection);
    }
    Ok(response)
}

/// A proxy to an upstream that offers these protocols.
fn proxy(protocols: &[&[u8]]) -> (ProxyServer, TlsUpstream) {
    let file = catalog_file("");
    let folder = file.parent().unwrap();
    certificate(folder, "7");
    let upstream = TlsUpstream::start(folder, protocols);
    let text = catalog("window = '99 per 1m'", &upstream.url) + "[proxy]\nca_file = 'cert.pem'\n";
    std::fs::write(&file, text).unwrap();
    (ProxyServer::start_file(&file), upstream)
}

#[test]
fn the_upstream_chooses_the_protocol() {
    const H2: &[u8] = b"h2";
    const HTTP1: &[u8] = b"http/1.1";
    for (protocols, version) in [
        (&[H2, HTTP1][..], "HTTP/2.0"),
        (&[H2][..], "HTTP/2.0"),
        (&[HTTP1][..], "HTTP/1.1"),
        (&[][..], "HTTP/1.1"),
    ] {
        let (server, upstream) = proxy(protocols);
        let mut client = server.connect();
        for _ in 0..5 {
            client.send("GET /", &[], b"");
            assert_eq!(client.read_response().body, version, "{protocols:?}");
        }
        assert_eq!(upstream.connections.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn an_upgrade_is_asked_for_in_http1() {
    let wish = [("Upgrade", "websocket"), ("Connection", "upgrade")];
    let (server, _upstream) = proxy(&[b"h2", b"http/1.1"]);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().body, "HTTP/2.0");
    client.send("GET /", &wish, b"");
    assert!(client.read_head().starts_with("HTTP/1.1 101"));
    let (server, _upstream) = proxy(&[b"h2"]);
    let mut client = server.connect();
    client.send("GET /", &wish, b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (501, "upstream-no-upgrade"));
}
