//! A whole server of the built binary, in a folder of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The environment variable with the path of the binary.
const SERVER: &str = "CATRACA_FAULTS_SERVER";
/// How many nodes share the store.
pub const NODES: usize = 3;
/// The longest lease, and so the grace of the kind `payment`.
pub const TTL_MS: u64 = 2_000;
/// The limit of keys that are exhausted before the fault, and of those that are not.
pub const LIMITS: [(&str, usize); 2] = [("early", 60), ("late", 150)];

const POLICIES: &str = r#"
[policy.early]
by     = ["customer"]
window = "60 per 1h"
[policy.late]
by     = ["customer"]
window = "150 per 1h"
[policy.guard]
by     = ["customer"]
window = "10000 per 1h"
[locks.kind.payment]
ttl            = "2s"
ttl_max        = "2s"
failover_grace = true
[locks.kind.resource]
ttl            = "2s"
ttl_max        = "2s"
failover_grace = false
"#;

/// The built binary; `None` if these tests are not wanted.
pub fn program() -> Option<PathBuf> {
    std::env::var_os(SERVER).map(PathBuf::from)
}

/// A server that is killed on drop.
pub struct Node {
    child: Child,
    pub address: String,
    /// Kept open: a server that cannot write its output would end.
    _output: BufReader<ChildStdout>,
}

impl Node {
    /// Starts a server over a store and records. `more` are further lines of `[store]`.
    pub fn start(program: &Path, folder: &Path, store: &str, more: &str, records: &str) -> Self {
        fs::create_dir_all(folder).unwrap();
        let catalog = folder.join("catalog.toml");
        let store = format!("[store]\nurl = {store:?}\nnodes = {NODES}\n{more}\n");
        let records = format!("[records]\nurl = {records:?}\n");
        fs::write(&catalog, format!("{POLICIES}{store}{records}")).unwrap();
        fs::write(folder.join("catraca.secret"), "07".repeat(32)).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&catalog);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = read_address(&mut output).unwrap_or_else(|| {
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            panic!("the server did not start: {log}")
        });
        Self { child, address, _output: output }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_address(output: &mut impl BufRead) -> Option<String> {
    let lines = output.lines().map_while(Result::ok);
    let mut addresses = lines.filter_map(|line| Some(line.split_once("http://")?.1.to_owned()));
    let address = addresses.next()?;
    Some(address.split_whitespace().next()?.to_owned())
}
