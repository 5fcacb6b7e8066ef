//! A private redis-server with a port on loopback and a Unix socket, in its own directory.
//!
//! Dropping the guard kills the server and deletes the directory, also when the test panics.

#![expect(clippy::expect_used, reason = "a test cannot run without its server")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::fake_clock::FakeClockLibrary;
use crate::resp::{RespClient, RespValue};

/// The environment variable with the path of the program.
const PROGRAM_VARIABLE: &str = "CATRACA_REDIS_SERVER";
/// The log lines of a server and of a Sentinel that accepts connections.
const READY: [&str; 2] = ["eady to accept connections", "Sentinel ID is"];
/// Start attempts: another process may take the free port before the server binds it.
const ATTEMPTS: u32 = 5;

/// A server that is killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    args: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
    directory: PathBuf,
    port: u16,
    /// The password that [`RedisServer::connect`] sends.
    password: Option<String>,
    /// Kept open, so that the server can always write its log.
    log: BufReader<ChildStdout>,
}

impl RedisServer {
    /// Starts a server without persistence. `None` if the tests on Redis are left out.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with additional command-line arguments.
    ///
    /// # Panics
    ///
    /// If the program exists but does not start.
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        if program().is_none() {
            println!("skipped: {PROGRAM_VARIABLE} is empty");
            return None;
        }
        let args = [&["--save", "", "--appendonly", "no"], settings].concat();
        Some(Self::start_in(fresh_directory(), &args, Vec::new()))
    }

    /// Starts a server whose wall clock the test sets.
    ///
    /// # Panics
    ///
    /// If the program exists but does not start.
    pub fn start_with_clock(clock: &FakeClockLibrary) -> Option<Self> {
        program()?;
        let args = ["--save", "", "--appendonly", "no"];
        Some(Self::start_in(fresh_directory(), &args, clock.environment()))
    }

    /// Starts a server in a directory. An argument may be a configuration file there.
    pub(super) fn start_in(
        directory: PathBuf,
        args: &[&str],
        environment: Vec<(&'static str, OsString)>,
    ) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        for _ in 0..ATTEMPTS {
            let port = free_port();
            if let Some((child, log)) = launch(&directory, port, &args, &environment) {
                let password = None;
                return Self { child, args, environment, directory, port, password, log };
            }
        }
        panic!("redis-server exits before it is ready: {args:?}");
    }

    /// Sets the password that [`RedisServer::connect`] sends.
    pub(super) fn with_password(mut self, password: Option<&str>) -> Self {
        self.password = password.map(str::to_owned);
        self
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    /// Connects over the Unix socket.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn connect(&self) -> RespClient {
        let mut client = RespClient::connect(&self.socket()).expect("the server listens");
        if let Some(password) = &self.password {
            client.call(&[b"AUTH", password.as_bytes()]).expect("the server answers");
        }
        client
    }

    /// Sends one command over a new connection; an error reply is a [`RespValue::Error`].
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn command(&self, command: &[&str]) -> RespValue {
        let parts: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        self.connect().call(&parts).expect("the server answers")
    }

    /// A field of the reply of `INFO` or `CLUSTER INFO`.
    pub fn field(&self, section: &[&str], name: &str) -> Option<String> {
        let RespValue::Bytes(info) = self.command(section) else { return None };
        let info = String::from_utf8_lossy(&info).into_owned();
        let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
        info.lines().find_map(value)
    }

    /// Sends a signal, such as `STOP` and `CONT` to pause the server.
    ///
    /// # Panics
    ///
    /// If the signal cannot be sent.
    pub fn signal(&self, name: &str) {
        let signal = format!("-{name}");
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([&signal, &pid]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill {signal} {pid}");
    }

    /// Kills the server, as a crash would.
    ///
    /// # Panics
    ///
    /// If it cannot be killed.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the server can be killed");
    }

    /// Starts the server again with the same port and directory.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&mut self) {
        let launched = launch(&self.directory, self.port, &self.args, &self.environment);
        (self.child, self.log) = launched.expect("the server starts again");
    }

    /// Starts the server again without waiting until it is ready: it may have much to load first.
    ///
    /// # Panics
    ///
    /// If the process cannot be started.
    pub fn begin_restart(&mut self) {
        let spawned = spawn(&self.directory, self.port, &self.args, &self.environment);
        let mut child = spawned.expect("redis-server can be started");
        self.log = BufReader::new(child.stdout.take().expect("stdout is piped"));
        self.child = child;
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        let removed = fs::remove_dir_all(&self.directory);
        if let Some(error) = killed.err().or(removed.err()) {
            eprintln!("cannot kill redis-server or delete its directory: {error}");
        }
    }
}

/// The program to start. Only an empty `CATRACA_REDIS_SERVER` leaves these tests out: a test that
/// is skipped because a program is missing would be reported as passed.
///
/// # Panics
///
/// If the variable is not set and no program is installed.
pub fn program() -> Option<OsString> {
    if let Some(named) = env::var_os(PROGRAM_VARIABLE) {
        return Some(named).filter(|named| !named.is_empty());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found = env::split_paths(&path).map(|directory| directory.join("redis-server"));
    let installed = found.find(|file| file.is_file()).map(PathBuf::into_os_string);
    assert!(
        installed.is_some(),
        "no redis-server on the path: install it, name it in {PROGRAM_VARIABLE}, or set that \
         variable to an empty text to leave out the tests on Redis"
    );
    installed
}

/// A new temporary directory.
pub(super) fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = env::temp_dir().join(format!("catraca-redis-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).expect("the temporary directory can be written");
    directory
}

/// A free port whose cluster bus port, ten thousand above it, is free too.
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

/// Starts the server and waits until it is ready; `None` if it exited instead.
fn launch(
    directory: &Path,
    port: u16,
    args: &[String],
    environment: &[(&'static str, OsString)],
) -> Option<(Child, BufReader<ChildStdout>)> {
    let spawned = spawn(directory, port, args, environment);
    let mut child = spawned.expect("redis-server can be started");
    let mut log = BufReader::new(child.stdout.take().expect("stdout is piped"));
    if log.by_ref().lines().map_while(Result::ok).any(|line| is_ready(&line)) {
        return Some((child, log));
    }
    child.wait().expect("redis-server has exited");
    None
}

fn is_ready(line: &str) -> bool {
    READY.iter().any(|words| line.contains(words))
}

fn spawn(
    directory: &Path,
    port: u16,
    args: &[String],
    environment: &[(&'static str, OsString)],
) -> io::Result<Child> {
    let mut command = Command::new(program().unwrap_or_default());
    command.envs(environment.iter().cloned());
    // redis-server expects the configuration file before all options.
    let (files, settings): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.ends_with(".conf"));
    command.args(files).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--daemonize", "no", "--logfile", "", "--loglevel", "notice", "--unixsocket"]);
    command.arg(socket(directory)).arg("--dir").arg(directory).args(settings);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}
