//! Fuzzes the HTTP API by its own description: thousands of requests, right and wrong, with a key
//! of each role, with a stranger's and with none.
//!
//! Every answer must be one that the description lists, of its media type and shape; none may be a
//! server's error. The seed is printed, and taken back from `CATRACA_SEED`. Must not test the live
//! feed, which never ends.

mod server;
mod tool;

use std::env;

use anyhow::{Context, Result};

use super::{TestContext, build_binary};
use crate::scratch::Scratch;
use server::ServerUnderTest;

const SEED: u64 = 20_260_101;
/// Cases of each call, for the admin key and for all other callers.
const MOST: u32 = 60;
const FEW: u32 = 12;

/// What is checked of every answer. Not that right requests succeed: an undeclared gate, or
/// an address that is none, is right by the schema and refused by the catalog.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,\
                      negative_data_rejection,missing_required_header,unsupported_method,\
                      allow_header_conformance,ignored_auth";
/// Without a key that counts, refusing is all that can be checked.
const REFUSED: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                       response_headers_conformance,response_schema_conformance";

pub(crate) fn run(context: &TestContext) -> Result<()> {
    let tool = tool::need(context)?;
    let binary = build_binary(context)?;
    let seed = env::var("CATRACA_SEED").map_or(Ok(SEED), |text| text.parse());
    let seed = seed.context("CATRACA_SEED is a whole number")?;
    let scratch = Scratch::new("api")?;
    for caller in ["admin", "check", "read", "stranger", "anonymous"] {
        let served = ServerUnderTest::start(context, &binary, scratch.path(), caller)?;
        let known = !["stranger", "anonymous"].contains(&caller);
        let cases = if caller == "admin" { MOST } else { FEW } * context.factor;
        println!("as {caller}: {cases} random cases a call, seed {seed}");
        let mut run = context.repo.command(&tool.display().to_string());
        run.current_dir(scratch.path()).args(["run", &format!("{}/openapi.json", served.url)]);
        run.args(["--checks", if known { CHECKS } else { REFUSED }]);
        // One worker: with two the tool's own parser fails now and then.
        run.args(["--exclude-path", "/v1/events", "--workers", "1", "--no-color"]);
        run.args(["--phases", "examples,coverage,fuzzing", "--warnings", "off"]);
        run.args(["--max-examples", &cases.to_string(), "--seed", &seed.to_string()]);
        run.args(["--request-timeout", "10", "--suppress-health-check", "all"]);
        run.args(["--generation-database", "none"]);
        for header in &served.headers {
            run.args(["--header", header]);
        }
        context.processes.run(&mut run).with_context(|| format!("as {caller}"))?;
        served.end()?;
    }
    Ok(())
}
