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
    line: Line,
    sent_on: bool,
    call: &Call<'_>,
    when: When,
) -> RedisResult<Vec<u8>> {
    evaluate(line, sent_on, SCRIPT, |name, script| command(name, script, call, when)).await
}

/// Runs a script that the line's server was given when it was greeted. `command` makes the call
/// from a command's name and the script's digest or text.
pub(super) async fn evaluate(
    mut line: Line,
    sent_on: bool,
    script: &str,
    command: impl Fn(&str, &str) -> Cmd,
) -> RedisResult<Vec<u8>> {
    let known = command("EVALSHA", &line.about.script);
    let answer = send(&mut line.connection, known, sent_on).await;
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    if answer.as_ref().is_err_and(|error| error.kind() == unknown) {
        return send(&mut line.connection, command("EVAL", script), sent_on).await;
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
