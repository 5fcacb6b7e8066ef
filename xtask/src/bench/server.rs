//! Programs that a benchmark asks over loopback, ended with the value.
//!
//! Must listen on loopback alone.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(10);

/// A process that is killed with the value, unless it was ended before.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It has ended already, or must now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The `dist` binary, with `catalog.toml` of a folder.
pub(super) struct BenchServer {
    running: ServerProcess,
    pub(super) address: String,
    /// How long it took until it listened.
    pub(super) took: Duration,
}

impl BenchServer {
    pub(super) fn with(binary: &Path, folder: &Path, catalog: &str) -> Result<Self> {
        fs::write(folder.join("catalog.toml"), catalog)?;
        // A benchmark of a shared store must start that store itself.
        fs::write(folder.join("catraca.secret"), "07".repeat(32))?;
        Self::start(binary, folder)
    }

    pub(super) fn start(binary: &Path, folder: &Path) -> Result<Self> {
        let begun = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--config", "catalog.toml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let out = child.stdout.take().context("no output")?;
        let running = ServerProcess(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let took = begun.elapsed();
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned());
        let address = address.with_context(|| format!("it did not start: {line}"))?;
        Ok(Self { running, address, took })
    }

    pub(super) fn id(&self) -> u32 {
        self.running.0.id()
    }

    /// Ends it by a signal.
    pub(super) fn stop(mut self, signal: &str) -> Result<()> {
        Command::new("kill").args(["-s", signal, &self.id().to_string()]).status()?;
        self.running.0.wait()?;
        Ok(())
    }
}

/// A Redis that keeps nothing on disk.
pub(super) struct Redis {
    _running: ServerProcess,
    port: u16,
}

impl Redis {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let redis = Self { _running: ServerProcess(child), port };
        let begun = Instant::now();
        while redis.answers().is_err() {
            ensure!(begun.elapsed() < START, "Redis does not answer on port {port}");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn answers(&self) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        if &answer == b"+PONG\r\n" { Ok(()) } else { bail!("it is not ready") }
    }
}
