//! Fuzzes the HTTP API by its own description: thousands of requests, right and wrong, with a key
//! of each role, with a stranger's and with none.
//!
//! Every answer must be one that the description lists, of its media type and shape; none may be a
//! server's error. The seed is printed, and taken back from `CATRACA_SEED`. Must not test the live
//! feed, which never ends.

mod tool;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::{env, thread};

use anyhow::{Context, Result, bail};

use crate::server::{ServerUnderTest, keygen};
use crate::{Scratch, TestContext, binary};

const SEED: u64 = 20_260_101;
/// Cases of each call, for the admin key and for all other callers.
const MOST: u32 = 60;
const FEW: u32 = 12;
/// The callers besides the admin key.
const OTHERS: [&str; 4] = ["check", "read", "stranger", "anonymous"];

/// What is checked of every answer. Not that right requests succeed: an undeclared gate, or
/// an address that is none, is right by the schema and refused by the catalog.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,\
                      negative_data_rejection,missing_required_header,unsupported_method,\
                      allow_header_conformance,ignored_auth";
/// Without a key that counts, refusing is all that can be checked.
const REFUSED: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                       response_headers_conformance,response_schema_conformance";

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

/// Installs what the part needs.
pub fn set_up(context: &TestContext) -> Result<()> {
    tool::need(context).map(drop)
}

/// The part `api`.
pub fn run(context: &TestContext) -> Result<()> {
    let seed = env::var("CATRACA_SEED").map_or(Ok(SEED), |text| text.parse());
    let fuzzer = Fuzzer {
        context,
        tool: tool::need(context)?,
        binary: binary::build(context)?,
        seed: seed.context("CATRACA_SEED is a whole number")?,
        scratch: Scratch::new("api")?,
    };
    // The tool uses one core. All other callers together take about as long as the admin key.
    thread::scope(|scope| {
        let others = scope.spawn(|| OTHERS.iter().try_for_each(|caller| fuzzer.fuzz(caller, FEW)));
        let admin = fuzzer.fuzz("admin", MOST);
        let others = others.join().unwrap_or_else(|_| bail!("the other callers panicked"));
        admin.and(others)
    })
}

/// Runs the tool, with a server for each caller.
struct Fuzzer<'a> {
    context: &'a TestContext<'a>,
    tool: PathBuf,
    binary: PathBuf,
    seed: u64,
    scratch: Scratch,
}

impl Fuzzer<'_> {
    /// Prints the output of the tool when it has ended, because two of them run at a time.
    fn fuzz(&self, caller: &str, cases: u32) -> Result<()> {
        let cases = cases * self.context.factor;
        let known = !["stranger", "anonymous"].contains(&caller);
        let role = if known { caller } else { "admin" };
        let folder = self.scratch.path().join(caller);
        let served = ServerUnderTest::start(self.context, &self.binary, &folder, CATALOG, role)?;
        // The tool keeps files in its folder.
        let tool_folder = self.scratch.path().join(format!("{caller}-tool"));
        fs::create_dir(&tool_folder)?;
        let log = tool_folder.join("log");
        let output = File::create(&log)?;
        let mut run = self.command(&served.url, known, cases);
        run.current_dir(&tool_folder).stdout(output.try_clone()?).stderr(output);
        let key = match caller {
            "anonymous" => None,
            // A key that the server does not know.
            "stranger" => Some(keygen(self.context, &self.binary, "admin")?.0),
            _ => Some(served.key.clone()),
        };
        if let Some(key) = key {
            run.args(["--header", &format!("Authorization: Bearer {key}")]);
        }
        let result = self.context.processes.run(&mut run);
        let seed = self.seed;
        let log = fs::read(&log)?;
        let log = String::from_utf8_lossy(&log);
        println!("as {caller}: {cases} random cases a call, seed {seed}\n{log}");
        result.with_context(|| format!("as {caller}"))?;
        served.end()
    }

    fn command(&self, url: &str, known: bool, cases: u32) -> Command {
        let mut run = self.context.repo.command(&self.tool.display().to_string());
        run.args(["run", &format!("{url}/openapi.json")]);
        run.args(["--checks", if known { CHECKS } else { REFUSED }]);
        // One worker: with two the tool's own parser fails now and then.
        run.args(["--exclude-path", "/v1/events", "--workers", "1", "--no-color"]);
        run.args(["--phases", "examples,coverage,fuzzing", "--warnings", "off"]);
        run.args(["--max-examples", &cases.to_string(), "--seed", &self.seed.to_string()]);
        run.args(["--request-timeout", "10", "--suppress-health-check", "all"]);
        run.args(["--generation-database", "none"]);
        run
    }
}
