//! `catraca reset`: forgets one key, or everybody's under a policy.

use anyhow::Result;
use serde_json::Value;

use super::words::cell;
use super::{object, show, subject, text};
use crate::args::Reset;
use crate::client::Client;
use crate::exit::Exit;

/// Forgets counters, block and level.
pub fn run(args: &Reset) -> Result<Exit> {
    let whose = args.confirm.is_none().then(|| subject(&args.subject)).transpose()?;
    let body = object([
        ("policy", Some(args.policy.as_str().into())),
        ("subject", whose),
        ("confirm", text(&args.confirm)),
        ("why", text(&args.why)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/reset", &body)?;
    show(args.remote.output, &reply, |reply| {
        let policy = cell(&reply["policy"]);
        match args.confirm {
            None => format!("{policy} begins anew for this caller"),
            Some(_) => format!("{policy} begins anew for everybody; {}", ended(&reply["blocks"])),
        }
    })?;
    Ok(Exit::Yes)
}

fn ended(blocks: &Value) -> String {
    match blocks.as_u64() {
        Some(1) => "1 block ended".to_owned(),
        Some(blocks) => format!("{blocks} blocks ended"),
        None => "its blocks deny nobody, and are not listed once the records can be written".into(),
    }
}
