//! `catraca reset`: forgets one key.

use anyhow::Result;

use super::words::cell;
use super::{object, show, subject, text};
use crate::args::Reset;
use crate::client::Client;
use crate::exit::Exit;

/// Forgets counters, block and level.
pub fn run(args: &Reset) -> Result<Exit> {
    let body = object([
        ("policy", Some(args.policy.as_str().into())),
        ("subject", Some(subject(&args.subject)?)),
        ("why", text(&args.why)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/reset", &body)?;
    show(args.remote.output, &reply, |reply| {
        format!("{} begins anew for this caller", cell(&reply["policy"]))
    })?;
    Ok(Exit::Yes)
}
