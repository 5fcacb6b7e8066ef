//! Several requests on one connection of HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::helpers::{ProxyServer, TestUpstream, catalog, response};
use crate::http::tls::certificate;
use crate::test_server::catalog_file;

type Client = SendRequest<Empty<Bytes>>;

/// A proxy with TLS, whose client has a small window for each stream.
async fn connect(server: &ProxyServer, certificate: &[u8]) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1_000);
    let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("https://localhost{path}")).body(Empty::new()).unwrap()
}

#[test]
fn a_stream_that_its_client_does_not_read_is_ended_alone() {
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/large") {
            call.send("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n");
            let block = vec![b'a'; 1 << 16];
            return (0..1_600).all(|_| call.try_send_bytes(&block));
        }
        call.send(&response("200 OK", "", "small"));
        true
    });
    let more = "[server]\nanswer_timeout = '1s'\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";
    let file = catalog_file(&(catalog("inflight = 2\nhold = '10m'", &upstream) + more));
    let folder = file.parent().unwrap();
    certificate(folder, "7");
    let pem = std::fs::read(folder.join("cert.pem")).unwrap();
    let server = ProxyServer::start_file(&file);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = connect(&server, &pem).await;
        let unread = client.send_request(get("/large")).await.unwrap();
        assert_eq!(unread.status(), 200);
        assert_eq!(server.remaining_async("site").await, 1);
        // The connection itself is in use all the time.
        loop {
            let answer = client.send_request(get("/small")).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "small");
            if server.remaining_async("site").await == 2 {
                break;
            }
        }
        assert!(unread.into_body().collect().await.is_err());
    });
    assert_eq!(server.context.connections.count(), 1);
}
