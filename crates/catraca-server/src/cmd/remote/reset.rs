//! `catraca reset`: clears one key of a policy, or all its keys.

use std::io::{IsTerminal, stdin};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::format::cell;
use super::{object, remaining_text, show, subject, text};
use crate::args::ResetArgs;
use crate::client::Client;
use crate::exit::Exit;

/// Clears counters, block and ban level.
pub fn run(args: &ResetArgs) -> Result<Exit> {
    let confirm = match (&args.confirm, args.all) {
        (None, true) => Some(ask_for_name(&args.policy)?),
        (confirm, _) => confirm.clone(),
    };
    let subject = confirm.is_none().then(|| subject(&args.subject)).transpose()?;
    let body = object([
        ("policy", Some(args.policy.as_str().into())),
        ("namespace", text(&args.namespace)),
        ("subject", subject),
        ("confirm", text(&confirm)),
        ("why", text(&args.why)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/reset", &body)?;
    show(args.remote.output, &reply, |reply| {
        let policy = cell(&reply["policy"]);
        match confirm {
            None => {
                let others = members_text(&reply["members"]) + &remaining_text(reply);
                format!("{policy} is reset for this caller{others}")
            }
            Some(_) => {
                format!("{policy} is reset for all keys; {}", ended_blocks_text(&reply["blocks"]))
            }
        }
    })?;
    Ok(Exit::Yes)
}

/// Asks an operator to type the policy's name; fails without a terminal.
fn ask_for_name(policy: &str) -> Result<String> {
    if !stdin().is_terminal() {
        bail!("this cannot be confirmed without a terminal: write --confirm {policy} in a script");
    }
    eprint!("This clears all keys of {policy} and ends its blocks. Type its name to confirm: ");
    let mut typed = String::new();
    stdin().read_line(&mut typed).context("cannot read the name")?;
    if typed.trim() != policy {
        bail!("`{}` is not {policy}: nothing was reset", typed.trim());
    }
    Ok(policy.to_owned())
}

/// The blocks of other keys that ended too.
fn members_text(members: &Value) -> String {
    let Some(members) = members.as_array() else {
        return "; blocks that the same act made could not be looked up, and stay".to_owned();
    };
    let text = |member: &Value| {
        format!("\nand {}, which the same act blocked, is released", cell(&member["subject"]))
    };
    members.iter().map(text).collect()
}

fn ended_blocks_text(blocks: &Value) -> String {
    match blocks.as_u64() {
        Some(1) => "1 block ended".to_owned(),
        Some(blocks) => format!("{blocks} blocks ended"),
        None => "its blocks have ended, and stay listed until the records can be written".into(),
    }
}
