//! A server for one test, with the catalog that the test gives it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::talk::{Answer, Talk};

/// A server on a port of its own, ended with the test.
pub struct Served {
    child: Child,
    pub address: String,
    pub greeting: String,
}

impl Served {
    /// The demo, as a newcomer starts it.
    pub fn demo() -> Self {
        Self::start("127.0.0.1:0", &[])
    }

    /// A server of this catalog.
    pub fn with(catalog: &str) -> Self {
        Self::on("127.0.0.1:0", catalog)
    }

    /// The same, on an address.
    pub fn on(address: &str, catalog: &str) -> Self {
        Self::on_file(address, &file(catalog))
    }

    /// A server of the catalog in this file, and of what is kept beside it.
    pub fn of(file: &Path) -> Self {
        Self::on_file("127.0.0.1:0", file)
    }

    /// The same, on an address.
    pub fn on_file(address: &str, file: &Path) -> Self {
        Self::start(address, &["--config", file.to_str().unwrap()])
    }

    /// The same, though the records say that callers needed a key.
    pub fn without_keys(file: &Path) -> Self {
        let args = ["--allow-no-keys", "--config", file.to_str().unwrap()];
        Self::start("127.0.0.1:0", &args)
    }

    /// A server of the catalog in this file, started with these variables.
    pub fn with_env<V: AsRef<OsStr> + Copy>(file: &Path, variables: &[(&str, V)]) -> Self {
        let mut command = binary();
        command.envs(variables.iter().copied());
        Self::run(command, "127.0.0.1:0", &["--config", file.to_str().unwrap()])
    }

    fn start(address: &str, args: &[&str]) -> Self {
        Self::run(binary(), address, args)
    }

    fn run(mut command: Command, address: &str, args: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--listen", address])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            greeting.push_str(&lines.next().unwrap().unwrap());
            greeting.push('\n');
        }
        let address = greeting.split("://").nth(1).and_then(|rest| rest.split('\n').next());
        let address = address.unwrap().trim().to_owned();
        Self { child, address, greeting }
    }

    /// A connection to it.
    pub fn connect(&self) -> Talk {
        Talk::to(&self.address)
    }

    /// A connection to it that comes from this address, such as `127.0.0.2`.
    pub fn connect_from(&self, source: &str) -> Talk {
        Talk::from(source, &self.address)
    }

    /// One request without a body, on a connection of its own.
    pub fn ask(&self, request: &str, headers: &[(&str, &str)]) -> Answer {
        let mut talk = self.connect();
        talk.send(request, headers, b"");
        talk.answer()
    }

    /// One POST of JSON, on a connection of its own.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        let mut talk = self.connect();
        talk.post(path, body);
        talk.answer()
    }

    /// The same, and its answer read as JSON.
    pub fn json(&self, path: &str, body: &str) -> (u16, Value) {
        let answer = self.post(path, body);
        (answer.status, answer.json())
    }

    /// Sends a signal such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; how it ended, and what it said at last.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test.
pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_catraca"))
}

/// A catalog in a folder of its own, since what is kept is kept beside it.
pub fn file(text: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("http-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("catalog.toml");
    fs::write(&path, text).unwrap();
    path
}
