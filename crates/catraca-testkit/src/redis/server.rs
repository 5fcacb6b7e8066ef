//! One private redis-server: a port on loopback and a Unix socket, in a directory of its own.
//!
//! Ends with its guard, also when the test panics. Must not keep anything on disk after that.

#![expect(clippy::expect_used, reason = "a test without its server cannot go on")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::resp::{Client, Value};
use crate::wrong_clock::WrongClock;

const NAMED: &str = "CATRACA_REDIS_SERVER";
/// What a server, or a Sentinel, logs when it can be asked.
const READY: [&str; 2] = ["eady to accept connections", "Sentinel ID is"];
/// A port that was free a moment ago may be taken when the server starts.
const ATTEMPTS: u32 = 5;

/// A server that ends with this.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    args: Vec<String>,
    /// What it is told by its environment.
    told: Vec<(&'static str, OsString)>,
    directory: PathBuf,
    port: u16,
    /// What it wants to hear first.
    password: Option<String>,
    /// Held open, so that the server can always write its log.
    log: BufReader<ChildStdout>,
}

impl RedisServer {
    /// Starts a server with nothing on disk. None only where nobody named one and none is
    /// installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with more settings, as on its command line.
    ///
    /// # Panics
    ///
    /// When there is a server but it does not start.
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        if program().is_none() {
            println!("skipped: no redis-server found and {NAMED} is not set");
            return None;
        }
        let args = [&["--save", "", "--appendonly", "no"], settings].concat();
        Some(Self::start_in(fresh_directory(), &args, Vec::new()))
    }

    /// The same with a clock that the test sets.
    ///
    /// # Panics
    ///
    /// When there is a server but it does not start.
    pub fn start_believing(clock: &WrongClock) -> Option<Self> {
        program()?;
        let args = ["--save", "", "--appendonly", "no"];
        Some(Self::start_in(fresh_directory(), &args, clock.told()))
    }

    /// The same in a directory that may hold a configuration file, named first.
    pub(super) fn start_in(
        directory: PathBuf,
        args: &[&str],
        told: Vec<(&'static str, OsString)>,
    ) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        for _ in 0..ATTEMPTS {
            let port = free_port();
            if let Some((child, log)) = launch(&directory, port, (&args, &told)) {
                return Self { child, args, told, directory, port, password: None, log };
            }
        }
        panic!("redis-server ends before it is ready: {args:?}");
    }

    /// The same for who wants a password.
    pub(super) fn knowing(mut self, password: Option<&str>) -> Self {
        self.password = password.map(str::to_owned);
        self
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its socket's path.
    pub fn socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    /// A plain connection.
    ///
    /// # Panics
    ///
    /// When nobody answers.
    pub fn connect(&self) -> Client {
        let mut client = Client::connect(&self.socket()).expect("the server listens");
        if let Some(password) = &self.password {
            client.call(&[b"AUTH", password.as_bytes()]).expect("the server answers");
        }
        client
    }

    /// One command on a connection of its own; a refusal is a [`Value::Error`].
    ///
    /// # Panics
    ///
    /// When nobody answers.
    pub fn command(&self, command: &[&str]) -> Value {
        let parts: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        self.connect().call(&parts).expect("the server answers")
    }

    /// A field of what `INFO` tells, or `CLUSTER INFO`.
    pub fn field(&self, section: &[&str], name: &str) -> Option<String> {
        let Value::Bytes(info) = self.command(section) else { return None };
        let info = String::from_utf8_lossy(&info).into_owned();
        let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
        info.lines().find_map(value)
    }

    /// Stops it for a while (`STOP`), lets it go on (`CONT`).
    ///
    /// # Panics
    ///
    /// When the signal cannot be sent.
    pub fn signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.pid().to_string());
        let sent = Command::new("kill").args([&signal, &pid]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill {signal} {pid}");
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Panics
    ///
    /// When it cannot be ended.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it can be ended");
    }

    /// Starts it again at the same place, with what it kept on disk.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&mut self) {
        let launched = launch(&self.directory, self.port, (&self.args, &self.told));
        (self.child, self.log) = launched.expect("it starts where it was");
    }

    /// Starts it again at the same place and does not wait until it is ready: it may have much to
    /// read first.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn begin_restart(&mut self) {
        let how = (&self.args[..], &self.told[..]);
        let mut child = spawn(&self.directory, self.port, how).expect("it can be started");
        self.log = BufReader::new(child.stdout.take().expect("stdout is piped"));
        self.child = child;
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        let removed = fs::remove_dir_all(&self.directory);
        if let Some(error) = ended.err().or(removed.err()) {
            eprintln!("redis-server left something behind: {error}");
        }
    }
}

/// The program to start, if there is one; none where an empty name says that nobody wants one.
pub fn program() -> Option<OsString> {
    if let Some(named) = env::var_os(NAMED) {
        return Some(named).filter(|named| !named.is_empty());
    }
    let path = env::var_os("PATH")?;
    let mut found = env::split_paths(&path).map(|directory| directory.join("redis-server"));
    found.find(|file| file.is_file()).map(PathBuf::into_os_string)
}

/// A directory that nobody else uses.
pub(super) fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = env::temp_dir().join(format!("catraca-redis-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).expect("the temporary directory can be written");
    directory
}

/// A port of its own, and the one ten thousand above it, where a cluster's server speaks to others.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
        let port = listener.local_addr().map(|address| address.port()).unwrap_or(u16::MAX);
        if port < 50_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("redis.sock")
}

/// Arguments and environment.
type How<'a> = (&'a [String], &'a [(&'static str, OsString)]);

/// Starts the server and waits until it is ready; nothing if it ended instead.
fn launch(directory: &Path, port: u16, how: How<'_>) -> Option<(Child, BufReader<ChildStdout>)> {
    let mut child = spawn(directory, port, how).expect("redis-server can be started");
    let mut log = BufReader::new(child.stdout.take().expect("stdout is piped"));
    if log.by_ref().lines().map_while(Result::ok).any(|line| is_ready(&line)) {
        return Some((child, log));
    }
    child.wait().expect("it has ended");
    None
}

fn is_ready(line: &str) -> bool {
    READY.iter().any(|words| line.contains(words))
}

fn spawn(directory: &Path, port: u16, (args, told): How<'_>) -> io::Result<Child> {
    let mut command = Command::new(program().unwrap_or_default());
    command.envs(told.iter().cloned());
    let (files, settings): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.ends_with(".conf"));
    command.args(files).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--daemonize", "no", "--logfile", "", "--loglevel", "notice", "--unixsocket"]);
    command.arg(socket(directory)).arg("--dir").arg(directory).args(settings);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}
