//! The floor: one HTTP call on one open connection, with a prepared body, whose answer is not
//! parsed, without pool or retry; with a deadline if asked for.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::load::Caller;
use crate::{BenchResult, DEADLINE};

const BODY: &str = r#"{"gate":"bench","subject":{"ip":"198.51.100.7"}}"#;

/// An open connection.
pub struct BareConnection {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    has_deadline: bool,
}

impl BareConnection {
    /// Connects.
    pub async fn open(address: &str, has_deadline: bool) -> BenchResult<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, address: address.to_owned(), has_deadline })
    }

    async fn call(&mut self) {
        let request = Request::post("/v1/check")
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from_static(BODY.as_bytes())))
            .expect("a valid request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("the server answers");
        assert!(response.status().is_success());
        let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
        assert!(body.starts_with(b"{\"allowed\":true"), "the limit of the benchmark is too low");
    }
}

impl Caller for BareConnection {
    async fn check(&mut self) {
        if self.has_deadline {
            return timeout(DEADLINE, self.call()).await.expect("the server answers in time");
        }
        self.call().await;
    }
}
