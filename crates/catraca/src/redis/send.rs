//! Sending the script: by its digest, or whole to a server that does not know it.
//!
//! Must not send it again for any other reason: it may have run.

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, pipe};

use super::call::Call;
use super::link::Line;
use super::script::SCRIPT;
use crate::store::When;

/// Runs the script. Where a server of a cluster has sent us on, that is said first.
pub(super) async fn run(
    mut line: Line,
    sent_on: bool,
    call: &Call<'_>,
    when: When,
) -> RedisResult<Vec<u8>> {
    let known = command("EVALSHA", &line.about.script, call, when);
    let answer = send(&mut line.connection, known, sent_on).await;
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    if answer.as_ref().is_err_and(|error| error.kind() == unknown) {
        return send(&mut line.connection, command("EVAL", SCRIPT, call, when), sent_on).await;
    }
    answer
}

async fn send(to: &mut impl ConnectionLike, command: Cmd, sent_on: bool) -> RedisResult<Vec<u8>> {
    if !sent_on {
        return command.query_async(to).await;
    }
    let mut both = pipe();
    both.cmd("ASKING").ignore().add_command(command);
    let (bytes,) = both.query_async(to).await?;
    Ok(bytes)
}

fn command(name: &str, script: &str, call: &Call<'_>, when: When) -> Cmd {
    let keys = call.keys();
    let size = script.len() + call.batch().len() + 64 * keys.len();
    let mut command = Cmd::with_capacity(5 + keys.len(), 64 + size);
    command.arg(name).arg(script).arg(keys.len());
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(call.batch());
    if let When::At(now) = when {
        command.arg(now.micros());
    }
    command
}
