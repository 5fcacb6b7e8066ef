//! A server to be fuzzed, with a fresh catalog and keys, ended by its id.
//!
//! Must listen on loopback alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};

use super::super::TestContext;

/// Names of the description's examples, so that many requests get past the names.
const CATALOG: &str = r#"
default = "other"

[attribute.participant]
kind  = "caseless"
facts = ["category"]

[attribute.payer]
kind    = "cpf_cnpj"
private = true

[policy.login]
by     = ["ip"]
window = "50 per 1m"
block  = "1s"

[policy.lookups]
by     = ["participant"]
bucket = { size = 1000, refill = "100 per 1s" }
cost   = { "404" = 20, default = 1 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true

[policy.pay]
each = ["customer", "session"]
ban  = [ { when = "body.reject_id == 5", for = "1s", reason = "r", status = 400 } ]

[policy.other]
by         = ["ip"]
fixed      = "1000 per 1m"
on_missing = "skip"

[gate.all]
policies = ["login", "pay", "lookups"]

# Random requests may wait for each other's locks; the limit keeps these waits short.
[locks]
wait_max = "1s"
"#;

/// A server, and the headers of the caller under test.
pub(crate) struct ServerUnderTest {
    child: Child,
    /// Kept open: a server that cannot speak would end.
    _said: BufReader<ChildStdout>,
    pub(crate) url: String,
    pub(crate) headers: Vec<String>,
}

impl ServerUnderTest {
    /// Starts a server with a key for this caller, unless it is `stranger` (wrong key) or
    /// `anonymous` (no key).
    pub(crate) fn start(
        context: &TestContext,
        binary: &Path,
        desk: &Path,
        caller: &str,
    ) -> Result<Self> {
        let role = if ["stranger", "anonymous"].contains(&caller) { "admin" } else { caller };
        let (key, table) = keygen(context, binary, role)?;
        let (other, _) = keygen(context, binary, "admin")?;
        let folder = desk.join(caller);
        fs::create_dir(&folder)?;
        let catalog = folder.join("catalog.toml");
        fs::write(&catalog, format!("{CATALOG}\n{table}"))?;
        let bearer = |key: &str| vec![format!("Authorization: Bearer {key}")];
        let headers = match caller {
            "anonymous" => Vec::new(),
            "stranger" => bearer(&other),
            _ => bearer(&key),
        };
        let mut server = context.repo.command(&binary.display().to_string());
        server.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&catalog);
        let mut child =
            context.processes.spawn(server.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        let out = child.stdout.take().context("the server has no output")?;
        let mut said = BufReader::new(out);
        let url = address(&mut said);
        let served = Self { child, _said: said, url: url?, headers };
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
fn keygen(context: &TestContext, binary: &Path, role: &str) -> Result<(String, String)> {
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
