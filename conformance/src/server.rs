//! A server for programs that call it, with a fresh catalog and a key, ended by its id.
//!
//! Must listen on loopback alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};

use crate::TestContext;

/// A server with a key.
pub(crate) struct ServerUnderTest {
    child: Child,
    /// Kept open: a server that cannot speak would end.
    _said: BufReader<ChildStdout>,
    pub(crate) url: String,
    pub(crate) key: String,
}

impl ServerUnderTest {
    /// Starts a server with this catalog, in a new folder, and with a key of this role.
    pub(crate) fn start(
        context: &TestContext,
        binary: &Path,
        folder: &Path,
        catalog: &str,
        role: &str,
    ) -> Result<Self> {
        let (key, table) = keygen(context, binary, role)?;
        fs::create_dir(folder)?;
        let file = folder.join("catalog.toml");
        fs::write(&file, format!("{catalog}\n{table}"))?;
        let mut server = context.repo.command(&binary.display().to_string());
        server.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
        let mut child =
            context.processes.spawn(server.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        let out = child.stdout.take().context("the server has no output")?;
        let mut said = BufReader::new(out);
        let url = address(&mut said);
        let served = Self { child, _said: said, url: url?, key };
        Ok(served)
    }

    /// Ends it; one that has ended by itself is a failure.
    pub(crate) fn end(mut self) -> Result<()> {
        ensure!(self.child.try_wait()?.is_none(), "the server did not live to the end");
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ServerUnderTest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A key, and the lines that let it in.
pub(crate) fn keygen(context: &TestContext, binary: &Path, role: &str) -> Result<(String, String)> {
    let mut made = context.repo.command(&binary.display().to_string());
    let made = made.args(["keygen", "--role", role]).output()?;
    ensure!(made.status.success(), "catraca keygen: {}", made.status);
    let text = String::from_utf8(made.stdout)?;
    let (key, rest) = text.split_once('\n').context("catraca keygen said nothing")?;
    let table = rest.find("[[auth.key]]").context("catraca keygen gave no table")?;
    Ok((key.to_owned(), rest[table..].to_owned()))
}

/// Where it listens, by its own word.
fn address(said: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    while said.read_line(&mut line)? > 0 {
        if let Some(at) = line.find("http://") {
            return Ok(line[at..].trim().to_owned());
        }
        line.clear();
    }
    anyhow::bail!("the server did not say where it listens")
}
