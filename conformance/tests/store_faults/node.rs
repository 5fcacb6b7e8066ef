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
/// The limit whose policy blocks a caller that exceeds it.
pub const AUTOMATIC_LIMIT: usize = 60;
/// The limit of keys that are exhausted before the fault, and of those that are not.
pub const LIMITS: [(&str, usize); 2] = [("early", 60), ("late", 150)];

const CATALOG: &str = "catalog.toml";

/// The built binary; `None` if these tests are not wanted.
pub fn program() -> Option<PathBuf> {
    std::env::var_os(SERVER).map(PathBuf::from)
}

/// Where a node has its records.
#[derive(Clone, Debug)]
pub enum RecordsPlace {
    /// A database that all nodes share.
    Shared(String),
    /// A file of its own; the store is the authority.
    OwnFile,
}

/// A server that is killed on drop.
pub struct Node {
    program: PathBuf,
    folder: PathBuf,
    child: Child,
    pub address: String,
    /// Kept open: a server that cannot write its output would end.
    output: BufReader<ChildStdout>,
}

impl Node {
    /// Starts a server with a catalog. The folder exists.
    pub fn start(program: &Path, folder: &Path, catalog: &str) -> Self {
        fs::write(folder.join(CATALOG), catalog).unwrap();
        fs::write(folder.join("catraca.secret"), "07".repeat(32)).unwrap();
        let (child, address, output) = spawn(program, folder, "127.0.0.1:0");
        let program = program.to_owned();
        let folder = folder.to_owned();
        Self { program, folder, child, address, output }
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).unwrap();
    }

    /// Starts the server again, at the same address and with the same files.
    pub fn restart(&mut self) {
        let (child, _, output) = spawn(&self.program, &self.folder, &self.address);
        self.child = child;
        self.output = output;
    }
}

fn spawn(program: &Path, folder: &Path, listen: &str) -> (Child, String, BufReader<ChildStdout>) {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = Command::new(program);
    command.args(["serve", "--listen", listen, "--config"]).arg(folder.join(CATALOG));
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let address = read_address(&mut output).unwrap_or_else(|| {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        panic!("the server did not start: {log}")
    });
    (child, address, output)
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
