//! A private PostgreSQL server with its own directory, socket and port, stopped on drop.
//!
//! The programs are those in `CATRACA_POSTGRES_BIN`, or on the path, or of Debian's package. Root
//! may not run them, so tests of root start them as the user `postgres`. Must not touch another
//! server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod pgbouncer;
mod replica;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

pub use pgbouncer::PgBouncer;

const PROGRAMS_VARIABLE: &str = "CATRACA_POSTGRES_BIN";
const USER: &str = "postgres";
/// The log lines of a primary and of a standby.
const READY: [&str; 2] = ["ready to accept connections", "ready to accept read-only connections"];
/// The password of the user `catraca`.
pub const PASSWORD: &str = "pw-0f-the-server";

/// A running server, or one that a test has stopped.
pub struct PostgresServer {
    programs: PathBuf,
    /// Everything of this server: data, socket, password.
    pub directory: PathBuf,
    /// Its port on loopback.
    pub port: u16,
    running: Mutex<Option<Child>>,
    /// Environment variables for the next start.
    pub variables: Mutex<Vec<(&'static str, OsString)>>,
}

/// The server that tests share while any of them uses it.
pub fn shared_server() -> Arc<PostgresServer> {
    static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PostgresServer::start());
        *shared = Arc::downgrade(&server);
        server
    })
}

impl PostgresServer {
    /// Creates the data and starts the server.
    pub fn start() -> Self {
        let server = Self::without_data();
        let initdb = server
            .program("initdb")
            .args(["--no-sync", "-U", "catraca", "-A", "scram-sha-256", "--auth-local=trust"])
            .args(["-E", "UTF8", "--locale=C.UTF-8", "-D"])
            .arg(server.data())
            .arg("--pwfile")
            .arg(server.directory.join("password"))
            .output();
        let initdb = initdb.unwrap();
        assert!(initdb.status.success(), "initdb: {}", String::from_utf8_lossy(&initdb.stderr));
        server.run();
        server
    }

    /// A server with a directory and a port, and nothing in it.
    fn without_data() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-pg-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(directory.join("password"), PASSWORD).unwrap();
        if let Some(user) = other_user() {
            chown(&directory, Some(user), None).unwrap();
            chown(directory.join("password"), Some(user), None).unwrap();
        }
        // If another process takes the port before the start, the start fails with an error.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let programs = programs();
        let running = Mutex::default();
        let variables = Mutex::default();
        Self { programs, directory, port, running, variables }
    }

    /// Starts the server; returns when it accepts connections.
    pub fn run(&self) {
        let mut postgres = self.program("postgres");
        postgres.envs(self.variables.lock().unwrap().iter().cloned());
        postgres.arg("-D").arg(self.data()).arg("-k").arg(&self.directory);
        postgres.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        // Tests kill processes and not the machine, so fsync is not needed; other tests cover
        // disks.
        postgres.args(["-c", "fsync=off", "-c", "max_connections=60"]);
        let mut child = postgres.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut log_text = String::new();
        while !READY.iter().any(|words| log_text.contains(words)) {
            let line = log.next().unwrap_or_else(|| panic!("postgres did not start: {log_text}"));
            log_text.push_str(&line.unwrap());
            log_text.push('\n');
        }
        std::thread::spawn(move || log.for_each(drop));
        *self.running.lock().unwrap() = Some(child);
    }

    /// Stops the server: `INT` closes all connections, `QUIT` exits without a checkpoint, `KILL` is
    /// a crash.
    pub fn stop(&self, signal: &str) {
        let Some(mut child) = self.running.lock().unwrap().take() else { return };
        let id = child.id().to_string();
        let others = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        kill(signal, &id);
        child.wait().unwrap();
        // After a kill, the child processes notice the death of their parent by themselves, and use
        // its shared memory until then.
        for other in others.unwrap_or_default().split_whitespace() {
            while is_alive(other) {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The URL of a database over the socket.
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://catraca@/{database}?host={}&port={}",
            self.directory.display(),
            self.port
        )
    }

    /// Runs a query in psql; returns the rows.
    pub fn psql(&self, database: &str, sql: &str) -> Vec<Vec<String>> {
        let output = self.shell(database).args(["-c", sql]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {stderr}");
        let rows = String::from_utf8(output.stdout).unwrap();
        rows.lines().map(|row| row.split('\u{1f}').map(str::to_owned).collect()).collect()
    }

    /// The command of psql on a database.
    pub fn shell(&self, database: &str) -> Command {
        let mut shell = Command::new(self.programs.join("psql"));
        shell
            .args(["-X", "-A", "-t", "-q", "-F", "\u{1f}", "-P", "null=NULL", "-U", "catraca"])
            .args(["-v", "ON_ERROR_STOP=1", "-d", database, "-p", &self.port.to_string(), "-h"])
            .arg(&self.directory)
            .env("PGOPTIONS", "-c search_path=catraca,public -c timezone=UTC");
        shell
    }

    /// A program of PostgreSQL, started as a user that may run it.
    fn program(&self, name: &str) -> Command {
        let mut command = run_as_other_user(&self.programs.join(name));
        command.current_dir(&self.directory).env("LC_ALL", "C");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop("QUIT");
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Whether a process exists and is not a zombie.
fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Sends a signal to one process.
pub fn kill(signal: &str, id: &str) {
    assert!(Command::new("kill").args(["-s", signal, id]).status().unwrap().success());
}

/// The id of the user that runs the server; `None` if the tests may run it themselves.
pub fn other_user() -> Option<u32> {
    let number = |args: &[&str]| -> u32 {
        let id = Command::new("id").args(args).output().unwrap();
        String::from_utf8(id.stdout).unwrap().trim().parse().expect("the user `postgres`")
    };
    (number(&["-u"]) == 0).then(|| number(&["-u", USER]))
}

/// The command of a program that root may not run, as a user that may.
fn run_as_other_user(program: &Path) -> Command {
    if other_user().is_none() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
    command
}

fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAMS_VARIABLE) {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    let all = on_path.iter().chain(versions.iter().rev());
    let has = |dir: &&PathBuf| ["initdb", "postgres", "psql"].iter().all(|p| is_file(dir, p));
    let found = all.into_iter().find(has).cloned();
    found.unwrap_or_else(|| {
        panic!("no initdb, postgres and psql: install postgresql, or set {PROGRAMS_VARIABLE}")
    })
}

fn is_file(dir: &Path, name: &str) -> bool {
    dir.join(name).is_file()
}
