//! The server under test: on loopback, with one bucket that is never empty, ended with the value.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::BenchResult;

const CATALOG: &str = "
    [policy.bench]
    by     = ['ip']
    bucket = { size = 1000000000, refill = '1000000000 per 1s' }
    [records]
    url = 'none'
";

/// A running server.
pub struct CheckServer {
    child: Child,
    folder: PathBuf,
    /// Its address on loopback.
    pub address: String,
}

impl CheckServer {
    /// Starts it on a free port.
    pub fn start(binary: &str) -> BenchResult<Self> {
        let folder = std::env::temp_dir().join(format!("catraca-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let catalog = folder.join("catalog.toml");
        std::fs::write(&catalog, CATALOG)?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&catalog)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let out = child.stdout.take().ok_or("no output")?;
        let mut server = Self { child, folder, address: String::new() };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned());
        server.address = address.ok_or_else(|| format!("it did not start: {line}"))?;
        Ok(server)
    }
}

impl Drop for CheckServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
