//! A proxy in this process, and upstreams whose every byte a test decides.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use catraca::{Check, CheckMode, Decision};
use catraca_server::{HttpFrontEnd, ProxyFrontEnd, Server, ServerContext, ServerOptions};
use tokio::sync::Notify;

use crate::raw_connection::RawConnection;
use crate::test_server::catalog_file;

/// Longer than any step takes.
pub const SOON: Duration = Duration::from_secs(30);

/// The series that count a response that an upstream did not begin in time.
pub const TIMEOUT_SERIES: [&str; 2] = [
    "catraca_proxy_upstream_failures_total{cause=\"timeout\"}",
    "catraca_connection_timeouts_total{phase=\"upstream\"}",
];

/// A server of this process with a proxy.
pub struct ProxyServer {
    pub context: Arc<ServerContext>,
    /// The address of the proxy.
    pub address: String,
    /// The address of the HTTP API.
    pub http: String,
    pub stop: Arc<Notify>,
    thread: Option<JoinHandle<String>>,
    /// Connections that had not ended when the server stopped.
    pub left_open: Arc<AtomicUsize>,
}

impl ProxyServer {
    pub fn start(catalog: &str) -> Self {
        Self::start_file(&catalog_file(catalog))
    }

    /// The same with a catalog that has files beside it.
    pub fn start_file(file: &Path) -> Self {
        let catalog = catraca_server::load_catalog(file).unwrap();
        let file = Some(file.to_owned());
        let options = ServerOptions { catalog, file, allow_no_keys: false };
        let mut server = Server::open(options).unwrap();
        let context = Arc::clone(server.context());
        let any_port = "127.0.0.1:0".parse().unwrap();
        let http = Arc::new(HttpFrontEnd::new(Arc::clone(&context)));
        let http = server.listen(any_port, http).unwrap().to_string();
        let proxy = Arc::new(ProxyFrontEnd::new(Arc::clone(&context), server.handle()));
        let address = server.listen(any_port, proxy).unwrap().to_string();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let left_open = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&left_open);
        let thread = std::thread::spawn(move || {
            let summary = server.run(async || stopped.notified().await);
            left.store(server.context().connections.count(), Ordering::SeqCst);
            server.close().unwrap();
            summary
        });
        Self { context, address, http, stop, thread: Some(thread), left_open }
    }

    pub fn connect(&self) -> RawConnection {
        RawConnection::open(&self.address)
    }

    /// A decision that changes nothing.
    pub fn peek(&self, gate: &str) -> Decision {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.peek_async(gate))
    }

    async fn peek_async(&self, gate: &str) -> Decision {
        let check = Check::new(gate, [("ip", "127.0.0.1")]);
        self.context.decide(&check, CheckMode::Peek).await.unwrap()
    }

    /// The units that the client of these tests has left, for a test that runs tasks.
    pub async fn remaining_async(&self, gate: &str) -> i64 {
        self.peek_async(gate).await.remaining.unwrap()
    }

    /// The units that the client of these tests has left.
    pub fn remaining(&self, gate: &str) -> i64 {
        self.peek(gate).remaining.unwrap()
    }

    /// The value of a series of `/metrics`.
    pub fn metric(&self, series: &str) -> u64 {
        let mut client = RawConnection::open(&self.http);
        client.send("GET /metrics", &[], b"");
        let text = client.read_response().body;
        let line = text.lines().find(|line| line.starts_with(series));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// Waits until the client has so many units left.
    pub fn wait_for_remaining(&self, gate: &str, units: i64) {
        let what = format!("{units} units of {gate} are left");
        wait_until(&what, || self.remaining(gate) == units);
    }

    /// Stops the server, and waits until it has stopped.
    pub fn stop(&mut self) -> String {
        self.stop.notify_one();
        self.thread.take().unwrap().join().unwrap()
    }
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// A catalog whose only route goes to these upstreams, with the fields of its policy.
pub fn catalog(policy: &str, upstream: &TestUpstream) -> String {
    let url = &upstream.url;
    format!(
        "[policy.site]\nby = ['ip']\n{policy}\n[[route]]\nmatch = '/**'\ngate = 'site'\n\
         upstream = '{url}'\n"
    )
}

/// An upstream. Each connection has a thread, which calls the handler for every request.
pub struct TestUpstream {
    pub url: String,
    connections: Arc<AtomicUsize>,
}

/// A request that an upstream has got: its head is read, its body is not.
pub struct UpstreamCall {
    /// The request line and the headers.
    pub head: String,
    /// Whether the body broke off.
    pub is_broken: bool,
    stream: BufReader<TcpStream>,
}

impl TestUpstream {
    /// The handler returns whether the connection takes another request.
    pub fn start(handler: impl Fn(&mut UpstreamCall) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let handler = Arc::new(handler);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                accepted.fetch_add(1, Ordering::SeqCst);
                let handler = Arc::clone(&handler);
                std::thread::spawn(move || serve(stream.unwrap(), &*handler));
            }
        });
        Self { url, connections }
    }

    /// An upstream that answers every request with the same text.
    pub fn constant(response: &'static str) -> Self {
        Self::start(move |call| {
            call.read_body();
            call.send(response);
            true
        })
    }

    /// An upstream at a URL on which nothing listens.
    pub fn unreachable(url: String) -> Self {
        Self { url, connections: Arc::default() }
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(stream: TcpStream, handler: &dyn Fn(&mut UpstreamCall) -> bool) {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut call =
        UpstreamCall { head: String::new(), is_broken: false, stream: BufReader::new(stream) };
    while call.read_head() {
        if !handler(&mut call) {
            return;
        }
    }
}

impl UpstreamCall {
    fn read_head(&mut self) -> bool {
        self.head.clear();
        while !self.head.ends_with("\r\n\r\n") {
            match self.stream.read_line(&mut self.head) {
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        true
    }

    /// The value of a header; lines of the same name are joined.
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let values = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let values: Vec<&str> = values.map(|(_, value)| value.trim()).collect();
        (!values.is_empty()).then(|| values.join(" | "))
    }

    /// The request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// Reads the next chunk of the body; empty at its end, and if it breaks off.
    pub fn read_part(&mut self) -> Vec<u8> {
        let mut line = String::new();
        let _ = self.stream.read_line(&mut line);
        let size = usize::from_str_radix(line.trim(), 16);
        let mut part = vec![0; size.clone().unwrap_or(0) + 2];
        self.is_broken = size.is_err() || self.stream.read_exact(&mut part).is_err();
        part.truncate(if self.is_broken { 0 } else { part.len() - 2 });
        part
    }

    /// Reads the whole body.
    pub fn read_body(&mut self) -> Vec<u8> {
        if let Some(length) = self.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.is_broken = self.stream.read_exact(&mut body).is_err();
            return body;
        }
        let mut body = Vec::new();
        while self.header("transfer-encoding").is_some() {
            let part = self.read_part();
            if part.is_empty() {
                break;
            }
            body.extend(part);
        }
        body
    }

    /// Reads the whole body as it was sent, with sizes of chunks and trailers.
    pub fn read_raw_body(&mut self) -> String {
        let mut text = String::new();
        if self.header("transfer-encoding").is_some() {
            let mut from = 0;
            while !text[from..].starts_with("0\r\n") || !text.ends_with("\r\n\r\n") {
                if !text[from..].starts_with("0\r\n") {
                    from = text.len();
                }
                assert!(self.stream.read_line(&mut text).unwrap() > 0, "{text}");
            }
        }
        text
    }

    /// The next line of another protocol; none at its end.
    pub fn try_read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).unwrap_or(0);
        (count > 0).then_some(line)
    }

    /// Reads and drops so many bytes.
    pub fn copy_body(&mut self, length: usize) {
        let mut body = (&mut self.stream).take(length as u64);
        std::io::copy(&mut body, &mut std::io::sink()).unwrap();
    }

    /// Sends a text.
    pub fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    /// Sends bytes; a peer that has closed is no error.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes);
    }

    /// Sends bytes; false if the peer has closed.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Sets how long a peer that does not read is waited for.
    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.stream.get_ref().set_write_timeout(Some(timeout)).unwrap();
    }

    /// Ends the connection with a reset.
    pub fn reset(&mut self) {
        let socket = self.stream.get_ref();
        rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO)).unwrap();
    }

    /// Whether the peer closes the connection without another byte.
    pub fn is_closed_by_peer(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// A response with this status and body.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}
