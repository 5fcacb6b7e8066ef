//! Starts the real binary as a server for one test and talks to it over HTTP.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::raw_connection::{HttpResponse, RawConnection};

/// A server process on a free port; dropping it kills the process.
pub struct TestServer {
    child: Child,
    pub address: String,
    /// What the server printed to standard output while it started.
    pub greeting: String,
}

impl TestServer {
    /// `catraca serve` without a catalog: the demo.
    pub fn demo() -> Self {
        Self::start("127.0.0.1:0", &[])
    }

    /// A server with this catalog on a free port.
    pub fn with_catalog(catalog: &str) -> Self {
        Self::listening_on("127.0.0.1:0", catalog)
    }

    /// A server with this catalog on `address`.
    pub fn listening_on(address: &str, catalog: &str) -> Self {
        Self::from_file_on(address, &catalog_file(catalog))
    }

    /// A server with the catalog in `file`, and the secret, records and snapshot beside it.
    pub fn from_file(file: &Path) -> Self {
        Self::from_file_on("127.0.0.1:0", file)
    }

    /// The same as `from_file`, on `address`.
    pub fn from_file_on(address: &str, file: &Path) -> Self {
        Self::start(address, &["--config", file.to_str().unwrap()])
    }

    /// Starts with `--allow-no-keys`, which records of a server that had keys require.
    pub fn without_keys(file: &Path) -> Self {
        let args = ["--allow-no-keys", "--config", file.to_str().unwrap()];
        Self::start("127.0.0.1:0", &args)
    }

    /// The same as `from_file`, with these environment variables.
    pub fn with_env<V: AsRef<OsStr> + Copy>(file: &Path, variables: &[(&str, V)]) -> Self {
        let mut command = binary();
        command.arg("serve").envs(variables.iter().copied());
        command.args(["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]);
        Self::run(command)
    }

    /// `catraca serve` with these arguments.
    pub fn serve(args: &[&str]) -> Self {
        let mut command = binary();
        command.arg("serve").args(args);
        Self::run(command)
    }

    fn start(address: &str, args: &[&str]) -> Self {
        Self::serve(&[&["--listen", address], args].concat())
    }

    fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The line with Ctrl-C is the last one of a start: the address is printed before it.
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            greeting.push_str(&lines.next().unwrap().unwrap());
            greeting.push('\n');
        }
        let address = greeting.split("://").nth(1).and_then(|rest| rest.split('\n').next());
        let address = address.unwrap().trim().to_owned();
        Self { child, address, greeting }
    }

    /// A new connection to the server.
    pub fn connect(&self) -> RawConnection {
        RawConnection::open(&self.address)
    }

    /// A new connection whose source address is `source`, such as `127.0.0.2`.
    pub fn connect_from(&self, source: &str) -> RawConnection {
        RawConnection::open_from(source, &self.address)
    }

    /// Sends one request without a body on a new connection.
    pub fn request(&self, request: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let mut connection = self.connect();
        connection.send(request, headers, b"");
        connection.read_response()
    }

    /// Sends one POST of JSON on a new connection.
    pub fn post(&self, path: &str, body: &str) -> HttpResponse {
        let mut connection = self.connect();
        connection.post(path, body);
        connection.read_response()
    }

    /// The same as `post`; returns the status and the body as JSON.
    pub fn json(&self, path: &str, body: &str) -> (u16, Value) {
        let answer = self.post(path, body);
        (answer.status, answer.json())
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `TERM` to the process.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Stops reading its standard error, so that every further line fails.
    pub fn close_stderr(&mut self) {
        drop(self.child.stderr.take());
    }

    /// Waits until the process ends; returns its status and its standard error.
    pub fn wait_for_exit(mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap(), stderr)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catraca"));
    // Presets have a proxy with a fixed port; servers of tests run side by side.
    command.env("PROXY_LISTEN", "127.0.0.1:0");
    command
}

/// Writes a catalog into a new folder: the server stores its other files beside the catalog.
pub fn catalog_file(text: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("http-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("catalog.toml");
    fs::write(&path, text).unwrap();
    path
}
