//! `catraca reset`: clears one key of a policy, or all its keys.

use anyhow::Result;
use serde_json::Value;

use super::format::cell;
use super::{object, show, subject, text};
use crate::args::ResetArgs;
use crate::client::Client;
use crate::exit::Exit;

/// Clears counters, block and ban level.
pub fn run(args: &ResetArgs) -> Result<Exit> {
    let subject = args.confirm.is_none().then(|| subject(&args.subject)).transpose()?;
    let body = object([
        ("policy", Some(args.policy.as_str().into())),
        ("namespace", text(&args.namespace)),
        ("subject", subject),
        ("confirm", text(&args.confirm)),
        ("why", text(&args.why)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/reset", &body)?;
    show(args.remote.output, &reply, |reply| {
        let policy = cell(&reply["policy"]);
        match args.confirm {
            None => format!("{policy} is reset for this caller"),
            Some(_) => {
                format!("{policy} is reset for all keys; {}", ended_blocks_text(&reply["blocks"]))
            }
        }
    })?;
    Ok(Exit::Yes)
}

fn ended_blocks_text(blocks: &Value) -> String {
    match blocks.as_u64() {
        Some(1) => "1 block ended".to_owned(),
        Some(blocks) => format!("{blocks} blocks ended"),
        None => "its blocks have ended, and stay listed until the records can be written".into(),
    }
}
