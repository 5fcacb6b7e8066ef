//! A second front end over the public API: a line protocol that shares the keys, limits, metrics,
//! drain and reload of the server with HTTP, and imports nothing of it.

mod front_end;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use catraca_server::{HttpFrontEnd, ReloadCause, Server, ServerContext, ServerOptions};
use tokio::sync::Notify;

use crate::keys::{Key, keygen};
use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::catalog_file;
use front_end::LineFrontEnd;

const POLICY: &str = "[policy.site]\nby = ['user']\nwindow = '2 per 1m'\n";
/// Longer than any answer takes.
const SOON: Duration = Duration::from_secs(30);

/// A server of this process with both front ends.
struct InProcessServer {
    context: Arc<ServerContext>,
    http: String,
    lines: String,
    stop: Arc<Notify>,
    thread: JoinHandle<String>,
}

impl InProcessServer {
    fn start(catalog: &str) -> Self {
        Self::from_file(&catalog_file(catalog))
    }

    fn from_file(file: &Path) -> Self {
        let catalog = catraca_server::load_catalog(file).unwrap();
        let file = Some(file.to_owned());
        let options = ServerOptions { catalog, file, allow_no_keys: false };
        let mut server = Server::open(options).unwrap();
        let context = Arc::clone(server.context());
        let any_port = "127.0.0.1:0".parse().unwrap();
        let http = Arc::new(HttpFrontEnd::new(Arc::clone(&context)));
        let http = server.listen(any_port, http).unwrap().to_string();
        let lines = Arc::new(LineFrontEnd::new(Arc::clone(&context)));
        let lines = server.listen(any_port, lines).unwrap().to_string();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let summary = server.run(async || stopped.notified().await);
            server.close().unwrap();
            summary
        });
        Self { context, http, lines, stop, thread }
    }

    fn connect(&self) -> LineConnection {
        LineConnection::open(&self.lines)
    }

    fn metrics(&self) -> String {
        let mut connection = RawConnection::open(&self.http);
        connection.send("GET /metrics", &[], b"");
        connection.read_response().body
    }

    /// Stops the server; returns the summary of its responses.
    fn stop(self) -> String {
        self.stop.notify_one();
        self.thread.join().unwrap()
    }
}

/// A client of the line protocol.
struct LineConnection(BufReader<TcpStream>);

impl LineConnection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self(BufReader::new(stream))
    }

    fn authenticated(server: &InProcessServer, key: &Key) -> Self {
        let mut connection = server.connect();
        assert_eq!(connection.call(&format!("AUTH {}", key.key)), "OK");
        connection
    }

    fn send(&mut self, bytes: &str) {
        self.0.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    /// The next line; empty at the end of the connection.
    fn read(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn call(&mut self, command: &str) -> String {
        self.send(&format!("{command}\n"));
        self.read()
    }
}

#[test]
fn a_check_is_decided_as_over_http() {
    let server = InProcessServer::start(POLICY);
    let mut connection = server.connect();
    assert_eq!(connection.call("CHECK site user=ana"), "ALLOW remaining=1");
    let mut http = RawConnection::open(&server.http);
    http.post("/v1/check", r#"{"gate":"site","subject":{"user":"ana"}}"#);
    assert_eq!(http.read_response().json()["remaining"], 0);
    let denied = connection.call("CHECK site user=ana");
    let wait = denied.strip_prefix("DENY over_limit retry_after_ms=").unwrap();
    assert!((1..=60_000).contains(&wait.parse::<u64>().unwrap()), "{denied}");
    assert!(connection.call("CHECK nowhere user=ana").starts_with("ERROR "));
    assert_eq!(connection.call("CHECK site user"), "ERROR write name=value");
    assert_eq!(connection.call("QUIT"), "OK");
    assert_eq!(connection.read(), "");
    server.stop();
}

#[test]
fn keys_roles_and_fixed_attributes_hold() {
    let check = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
    let read = keygen(&["--role", "read", "--name", "reader"]);
    let fixed = "[auth.key.fix]\nuser = 'ana'\n";
    let server = InProcessServer::start(&format!("{POLICY}{}{}{fixed}", read.table, check.table));
    let mut connection = server.connect();
    assert!(connection.call("CHECK site user=ana").starts_with("ERROR missing API key"));
    assert!(connection.call("AUTH catraca_wrong").starts_with("ERROR unknown API key"));
    assert!(connection.call("CHECK site user=ana").starts_with("ERROR unknown API key"));
    let mut reader = LineConnection::authenticated(&server, &read);
    let refused = reader.call("CHECK site user=ana");
    assert_eq!(refused, "ERROR this call needs a key of role check or admin");
    let mut shop = LineConnection::authenticated(&server, &check);
    assert_eq!(shop.call("CHECK site"), "ALLOW remaining=1");
    assert!(shop.call("CHECK site user=bea").starts_with("ERROR this key fixes"));
    server.stop();
}

#[test]
fn answers_and_connections_are_in_the_metrics_of_the_server() {
    let server = InProcessServer::start(POLICY);
    let mut connection = server.connect();
    for _ in 0..3 {
        connection.call("CHECK site user=ana");
    }
    connection.call("CHECK nowhere user=ana");
    let metrics = server.metrics();
    for line in [
        "catraca_check_seconds_count 4",
        "catraca_http_client_errors_total 1",
        // That of the lines and that of the scrape.
        "catraca_connections 2",
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line}\n{metrics}");
    }
    let decisions = metrics.lines().filter(|line| line.starts_with("catraca_decisions_total"));
    let counts = decisions.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 3);
    let summary = server.stop();
    assert!(summary.starts_with("5 responses, 1 with 4xx, 0 with 5xx"), "{summary}");
}

#[test]
fn a_stop_finishes_the_line_that_has_begun_and_closes_the_others() {
    let server = InProcessServer::start(POLICY);
    let mut idle = server.connect();
    assert_eq!(idle.call("CHECK site user=bea"), "ALLOW remaining=1");
    let mut begun = server.connect();
    begun.send("CHECK site user=a");
    server.stop.notify_one();
    // The signal to stop is given before the ports close.
    wait_until_closed(&server.lines);
    wait_until_closed(&server.http);
    assert_eq!(idle.read(), "");
    begun.send("na\n");
    assert_eq!(begun.read(), "ALLOW remaining=1");
    assert_eq!(begun.read(), "");
    let summary = server.thread.join().unwrap();
    assert!(summary.starts_with("2 responses, 0 with 4xx"), "{summary}");
}

fn wait_until_closed(address: &str) {
    wait_until("the port is closed", || TcpStream::connect(address).is_err());
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_limit_of_connections_holds_for_all_front_ends() {
    let limits = "[server]\nconnections_max = 1\nconnections_per_address = 2\n";
    let server = InProcessServer::start(&format!("{POLICY}{limits}"));
    let mut idle = server.connect();
    wait_until("the connection is accepted", || server.context.connections.count() == 1);
    // An idle connection gives way to one of another protocol.
    let mut busy = RawConnection::open(&server.http);
    assert_eq!(idle.read(), "");
    let headers = [JSON, ("Expect", "100-continue")];
    busy.send_bytes(&head("POST /v1/check", &headers, Some(2)));
    assert_eq!(busy.read_response().status, 100);
    // A busy one does not.
    let mut refused = server.connect();
    assert_eq!(refused.read(), "ERROR too many connections");
    assert_eq!(refused.read(), "");
    busy.send_bytes(b"{}");
    assert_eq!(busy.read_response().status, 400);
    assert_eq!(server.context.connections.metrics.idle_closed(), [1, 0]);
    assert_eq!(server.context.connections.metrics.refusals(), [1, 0]);
    server.stop();
}

#[test]
fn a_silent_connection_runs_into_the_timeout_of_its_phase() {
    let timeouts = "[server]\nhead_timeout = '20ms'\n";
    let server = InProcessServer::start(&format!("{POLICY}{timeouts}"));
    let mut silent = server.connect();
    let mut half = server.connect();
    half.send("CHECK si");
    assert_eq!((silent.read(), half.read()), (String::new(), String::new()));
    server.stop();
}

#[test]
fn a_reload_removes_a_key_and_changes_a_limit_of_an_open_connection() {
    let stays = keygen(&["--role", "check", "--name", "stays"]);
    let goes = keygen(&["--role", "check", "--name", "goes"]);
    let before = format!("{POLICY}{}{}", stays.table, goes.table);
    let file: PathBuf = catalog_file(&before);
    let server = InProcessServer::from_file(&file);
    let mut kept = LineConnection::authenticated(&server, &stays);
    let mut removed = LineConnection::authenticated(&server, &goes);
    assert_eq!(kept.call("CHECK site user=ana"), "ALLOW remaining=1");
    assert_eq!(removed.call("CHECK site user=bea"), "ALLOW remaining=1");
    let after = format!("{}{}", POLICY.replace("2 per", "9 per"), stays.table);
    fs::write(&file, after).unwrap();
    server.context.reloader.reload(ReloadCause::Signal).unwrap();
    assert_eq!(kept.call("CHECK site user=ana"), "ALLOW remaining=7");
    assert!(removed.call("CHECK site user=bea").starts_with("ERROR unknown API key"));
    server.stop();
}
