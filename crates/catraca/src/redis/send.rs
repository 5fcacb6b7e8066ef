//! Sending a script: by its digest, or whole to a server that does not know it.
//!
//! Must not send it again once it may have run: only a server that says that it has not run gets
//! it a second time.

use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, pipe};
use tokio::time::Instant;

use super::ahead::late;
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
    evaluate(&line, SCRIPT, |name, script| {
        send(line.clone(), command(name, script, (call, line.latest()), when), sent_on)
    })
    .await
}

/// Runs a script that the line's server was given when it was greeted. `go` makes and sends the
/// call from a command's name and the script's digest or text.
pub(super) async fn evaluate<T, F: Future<Output = RedisResult<T>>>(
    line: &Line,
    script: &str,
    go: impl Fn(&'static str, &str) -> F,
) -> RedisResult<T> {
    let sent = Instant::now();
    let answer = go("EVALSHA", &line.about.script).await;
    let Err(error) = &answer else { return answer };
    if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) {
        return go("EVAL", script).await;
    }
    // There is still time here, so it is the server's clock that was set.
    if let Some(now) = late(error) {
        line.about.ahead.hear(sent, now);
        return go("EVALSHA", &line.about.script).await;
    }
    answer
}

/// Sends one command.
pub(super) async fn send(mut line: Line, command: Cmd, sent_on: bool) -> RedisResult<Vec<u8>> {
    let to = &mut line.connection;
    if !sent_on {
        return command.query_async(to).await;
    }
    let mut both = pipe();
    both.cmd("ASKING").ignore().add_command(command);
    let (bytes,) = both.query_async(to).await?;
    Ok(bytes)
}

fn command(name: &str, script: &str, (call, latest): (&Call<'_>, i64), when: When) -> Cmd {
    let keys = call.keys();
    let size = script.len() + call.batch().len() + 64 * keys.len();
    let mut command = Cmd::with_capacity(6 + keys.len(), 64 + size);
    command.arg(name).arg(script).arg(keys.len());
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(call.batch()).arg(latest);
    if let When::At(now) = when {
        command.arg(now.micros());
    }
    command
}
