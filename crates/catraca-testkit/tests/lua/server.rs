//! A private redis-server for one test: a Unix socket in a directory of its own, nothing on disk.
//!
//! Ends with its guard, also when the test panics. Must not touch any other server.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use catraca_testkit::resp::Client;

const NAMED: &str = "CATRACA_REDIS_SERVER";
const READY: &str = "eady to accept connections";

pub struct Server {
    child: Child,
    directory: PathBuf,
    /// Held open, so that the server can always write its log.
    _log: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server. None only where nobody named one and none is installed.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: no redis-server found and {NAMED} is not set");
            return None;
        };
        let directory = fresh_directory();
        let mut child = spawn(&program, &directory).unwrap_or_else(|error| {
            drop(fs::remove_dir(&directory));
            panic!("cannot start {program:?}: {error}");
        });
        let mut log = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let ready = has_line(&mut log, READY);
        let server = Self { child, directory, _log: log };
        assert!(ready, "{program:?} ended before it was ready");
        Some(server)
    }

    pub fn connect(&self) -> Client {
        Client::connect(&socket(&self.directory)).expect("the server listens")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        let removed = fs::remove_dir_all(&self.directory);
        if let Some(error) = ended.err().or(removed.err()) {
            eprintln!("redis-server left something behind: {error}");
        }
    }
}

fn program() -> Option<OsString> {
    if let Some(named) = env::var_os(NAMED) {
        return Some(named);
    }
    let path = env::var_os("PATH")?;
    let mut found = env::split_paths(&path).map(|directory| directory.join("redis-server"));
    found.find(|file| file.is_file()).map(PathBuf::into_os_string)
}

fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = env::temp_dir().join(format!("catraca-lua-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).expect("the temporary directory can be written");
    directory
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("redis.sock")
}

fn spawn(program: &OsString, directory: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.args(["--logfile", "", "--loglevel", "notice", "--unixsocket"]);
    command.arg(socket(directory)).arg("--dir").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

fn has_line(log: &mut impl BufRead, words: &str) -> bool {
    log.lines().map_while(Result::ok).any(|line| line.contains(words))
}
