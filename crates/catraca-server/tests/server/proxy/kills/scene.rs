//! A server, an upstream and a client, and the counts of the server's store.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use catraca_testkit::redis::RedisServer;
use serde_json::Value;

use super::super::helpers::wait_until;
use super::actors::Actor;
use super::{KillPhase, Victim};
use crate::raw_connection::RawConnection;
use crate::test_server::{TestServer, catalog_file};

const LIMIT: i64 = 1_000;
const LEASES: i64 = 10;
/// The requests before that of the case.
pub const WHOLE_REQUESTS: i64 = 3;

/// Where the server keeps its state.
pub enum Store {
    Memory,
    Redis(RedisServer),
}

impl Store {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// Stops a shared store, which then does not answer.
    pub fn pause(&self) {
        if let Self::Redis(redis) = self {
            redis.signal("STOP");
        }
    }

    pub fn resume(&self) {
        if let Self::Redis(redis) = self {
            redis.signal("CONT");
        }
    }
}

/// What a store counts.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub charged: i64,
    pub leases: i64,
}

/// The processes of a case.
pub struct Scene {
    file: PathBuf,
    /// Absent while it is killed.
    server: Option<TestServer>,
    upstream: Actor,
    client: Option<Actor>,
    /// Whether the store is in the memory of the server.
    has_snapshots: bool,
}

impl Scene {
    pub fn open(phase: KillPhase, hold: &str, store: &Store) -> Self {
        let upstream = Actor::start("upstream", "yes");
        let port = upstream.wait_for("port");
        // A connection of HTTP/2 is open when the upstream has sent its settings: never here.
        let scheme = if phase == KillPhase::Connecting { "h2c" } else { "http" };
        let has_snapshots = matches!(store, Store::Memory);
        let store = match store {
            Store::Memory => "[store]\nsnapshot_interval = '100ms'\n".to_owned(),
            // The counts are exact only while the store answers in time.
            Store::Redis(redis) => format!("[store]\nurl = '{}'\ndeadline = '10s'\n", redis.url()),
        };
        let file = catalog_file(&format!(
            "[policy.count]\nby = ['ip']\nwindow = '{LIMIT} per 1h'\n\
             [policy.flight]\nby = ['ip']\ninflight = {LEASES}\nhold = '{hold}'\n\
             [policy.ban]\nby = ['ip']\nwindow = '{LIMIT} per 1h'\n\
             ban = [{{ when = 'body.x == 5', for = '1m' }}]\n\
             [policy.replacing_ban]\nby = ['ip']\nwindow = '{LIMIT} per 1h'\n\
             ban = [{{ when = 'body.x == 5', for = '1m', status = 400 }}]\n\
             [gate.site]\npolicies = ['count', 'flight']\n\
             [gate.reading]\npolicies = ['count', 'flight', 'ban']\n\
             [gate.replacing]\npolicies = ['count', 'flight', 'replacing_ban']\n\
             [[route]]\nmatch = '/Collecting'\ngate = 'site'\nset = {{ user = 'body:user' }}\n\
             upstream = 'http://127.0.0.1:{port}'\n\
             [[route]]\nmatch = '/AnswerHeld'\ngate = 'replacing'\n\
             upstream = 'http://127.0.0.1:{port}'\n\
             [[route]]\nmatch = '/RestRead'\ngate = 'reading'\n\
             upstream = 'http://127.0.0.1:{port}'\n\
             [[route]]\nmatch = '/UpgradePending'\ngate = 'reading'\n\
             upstream = 'http://127.0.0.1:{port}'\n\
             [[route]]\nmatch = '/ok'\ngate = 'site'\nupstream = 'http://127.0.0.1:{port}'\n\
             [[route]]\nmatch = '/**'\ngate = 'site'\nupstream = '{scheme}://127.0.0.1:{port}'\n\
             [proxy]\nlisten = '127.0.0.1:0'\nconnect_timeout = '60s'\n{store}"
        ));
        fs::write(file.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
        let server = Some(TestServer::from_file(&file));
        Self { file, server, upstream, client: None, has_snapshots }
    }

    fn server(&self) -> &TestServer {
        self.server.as_ref().unwrap()
    }

    fn proxy(&self) -> String {
        let greeting = &self.server().greeting;
        let line = greeting.lines().find(|line| line.contains("It proxies")).unwrap();
        let address = line.split("://").nth(1).and_then(|rest| rest.split(' ').next());
        address.unwrap().to_owned()
    }

    /// Requests that end before the case begins. In memory, they are in a snapshot then.
    pub fn serve_whole_requests(&self) {
        let mut client = RawConnection::open(&self.proxy());
        for _ in 0..WHOLE_REQUESTS {
            client.send("POST /ok", &[], b"bodybody");
            assert_eq!(client.read_response().status, 200);
        }
        wait_until("the requests are settled", || {
            let counts = self.counts();
            (counts.charged, counts.leases) == (WHOLE_REQUESTS, 0)
        });
        self.wait_for_snapshot();
    }

    /// Waits until everything so far is in a snapshot, if the store is in memory.
    pub fn wait_for_snapshot(&self) {
        // The first one may have begun before.
        for _ in 0..2 * usize::from(self.has_snapshots) {
            let written = self.snapshot_time();
            wait_until("a snapshot is written", || self.snapshot_time() != written);
        }
    }

    /// When the last snapshot was written.
    fn snapshot_time(&self) -> Option<SystemTime> {
        let file = self.file.with_file_name("catraca.snapshot");
        fs::metadata(file).and_then(|data| data.modified()).ok()
    }

    /// Begins a request, and waits until it is in its phase.
    pub fn begin_request(&mut self, phase: KillPhase) {
        let argument = format!("{} {}", self.proxy(), request(phase));
        let open = self.open_connections();
        let client = Actor::start("client", &argument);
        let is_checked = !matches!(phase, KillPhase::Collecting | KillPhase::CheckWaiting);
        for _ in 0..if is_checked { WHOLE_REQUESTS + 1 } else { 0 } {
            self.upstream.wait_for("head");
        }
        match phase {
            KillPhase::Connecting | KillPhase::HeadSent | KillPhase::UpgradePending => {}
            KillPhase::BodyUnderWay | KillPhase::Waiting | KillPhase::AnswerHeld => {
                drop(self.upstream.wait_for("body"));
            }
            // In `Collecting` it is a 100: the proxy waits for the body.
            KillPhase::HeadReceived | KillPhase::TunnelOpen | KillPhase::Collecting => {
                drop(client.wait_for("head"));
            }
            KillPhase::AnswerUnderWay | KillPhase::Ended | KillPhase::RestRead => {
                drop(client.wait_for("bytes 4"));
            }
            KillPhase::CheckWaiting => {
                wait_until("the client has a connection", || self.open_connections() > open);
            }
        }
        self.client = Some(client);
        if phase == KillPhase::RestRead {
            self.kill(Victim::Client);
        }
        if phase != KillPhase::CheckWaiting {
            assert_eq!(self.counts().leases, i64::from(is_checked));
        }
    }

    /// The number of open connections of the server.
    fn open_connections(&self) -> u64 {
        let text = self.server().request("GET /metrics", &[]).body;
        let line = text.lines().find(|line| line.starts_with("catraca_connections ")).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// The upstream sends what it has held back.
    pub fn finish_without_client(&mut self) {
        self.upstream.tell("go");
    }

    /// The upstream sends the rest, and the client gets it.
    pub fn finish_response(&mut self) {
        self.upstream.tell("go");
        self.client.as_ref().unwrap().wait_for("bytes 8");
    }

    pub fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Client => self.client.as_mut().unwrap().kill(),
            Victim::Upstream => self.upstream.kill(),
            // Dropped, which kills it with the same signal.
            Victim::Server => self.server = None,
        }
    }

    /// Starts the server again, over the state that the killed one left.
    pub fn restart_server(&mut self) {
        self.server = Some(TestServer::from_file(&self.file));
    }

    /// The counts in the store, which this does not change.
    pub fn counts(&self) -> Counts {
        let call = r#"{"gate":"site","subject":{"ip":"127.0.0.1"}}"#;
        let mut decision = Value::Null;
        wait_until("the store answers", || {
            decision = self.server().json("/v1/peek", call).1;
            decision["policies"].is_array() && decision["degraded"] != true
        });
        let rows = decision["policies"].as_array().unwrap();
        let remaining = |policy: &str| {
            let row = rows.iter().find(|row| row["policy"] == policy).unwrap();
            row["remaining"].as_i64().unwrap()
        };
        Counts { charged: LIMIT - remaining("count"), leases: LEASES - remaining("flight") }
    }

    /// Whether the next request has an answer: the upstream's, or that it is not there.
    pub fn serves_again(&self, victim: Victim) -> bool {
        let mut client = RawConnection::open(&self.proxy());
        client.send("POST /ok", &[], b"bodybody");
        let status = client.read_response().status;
        status == if victim == Victim::Upstream { 502 } else { 200 }
    }
}

/// The bytes that the client sends; `|` is the end of a line.
fn request(phase: KillPhase) -> String {
    if matches!(phase, KillPhase::UpgradePending | KillPhase::TunnelOpen) {
        return format!("GET /{phase:?} HTTP/1.1|Host: a|Connection: upgrade|Upgrade: x||");
    }
    let (more, body) = match phase {
        KillPhase::HeadSent => ("", ""),
        KillPhase::BodyUnderWay => ("", "body"),
        KillPhase::Collecting => ("Expect: 100-continue|", "body"),
        _ => ("", "bodybody"),
    };
    format!("POST /{phase:?} HTTP/1.1|Host: a|{more}Content-Length: 8||{body}")
}
