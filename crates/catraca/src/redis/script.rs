//! The Lua script that applies batches, and how scripts are called: by their SHA-1, or by their
//! text on a server that lost them (after `SCRIPT FLUSH` or a failover).
//!
//! A call is sent again only if the server says that it did not run it.

use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind, pipe};
use tokio::time::Instant;

use super::clock_offset::late_server_clock;
use super::connection::LiveConnection;
use super::script_args::ScriptArgs;
use crate::store::When;

/// The whole script, joined at build time. A Lua name must be defined before it is used, hence the
/// order; `fast_path.lua` comes first because it must not depend on anything.
pub const SCRIPT: &str = concat!(
    include_str!("fast_path.lua"),
    include_str!("prelude.lua"),
    include_str!("bucket.lua"),
    include_str!("window_entries.lua"),
    include_str!("window_refund.lua"),
    include_str!("sliding_window.lua"),
    include_str!("fixed_window.lua"),
    include_str!("in_flight.lua"),
    include_str!("algorithms.lua"),
    include_str!("block.lua"),
    include_str!("reference.lua"),
    include_str!("check.lua"),
    include_str!("credit.lua"),
    include_str!("ratio_watch.lua"),
    include_str!("settle.lua"),
    include_str!("block_ops.lua"),
    include_str!("dispatch.lua"),
);

/// Applies a batch with [`SCRIPT`]. With `asking`, a server of a cluster redirected the call here
/// and the command `ASKING` must come first.
pub(super) async fn run_script(
    live: LiveConnection,
    asking: bool,
    args: &ScriptArgs<'_>,
    when: When,
) -> RedisResult<Vec<u8>> {
    evaluate(&live, SCRIPT, |command, script| {
        // Built for each attempt: the second one may have a corrected deadline.
        let call = script_call(command, script, args, live.latest_server_time(), when);
        send(live.clone(), call, asking)
    })
    .await
}

/// Calls a script that was loaded when the connection was made. `attempt` sends the call; its
/// arguments are the Redis command and the SHA-1 or the text of the script.
pub(super) async fn evaluate<T, F: Future<Output = RedisResult<T>>>(
    live: &LiveConnection,
    script: &str,
    attempt: impl Fn(&'static str, &str) -> F,
) -> RedisResult<T> {
    let sent = Instant::now();
    let answer = attempt("EVALSHA", &live.server_info.script).await;
    let Err(error) = &answer else { return answer };
    if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) {
        return attempt("EVAL", script).await;
    }
    // The script refused the call as late, but the caller still waits: the server's clock was set
    // forward. Nothing was applied, so the call may be repeated with the corrected offset.
    if let Some(now) = late_server_clock(error) {
        live.server_info.clock_offset.observe(sent, now);
        return attempt("EVALSHA", &live.server_info.script).await;
    }
    answer
}

/// Sends one command, after `ASKING` if `asking` is set.
pub(super) async fn send<T: FromRedisValue>(
    mut live: LiveConnection,
    command: Cmd,
    asking: bool,
) -> RedisResult<T> {
    let connection = &mut live.connection;
    if !asking {
        return command.query_async(connection).await;
    }
    // `ASKING` applies only to the next command of its connection, which other calls use, too: a
    // pipeline keeps both together.
    let mut commands = pipe();
    commands.cmd("ASKING").ignore().add_command(command);
    let (answer,) = commands.query_async(connection).await?;
    Ok(answer)
}

/// `KEYS` and `ARGV` as `prelude.lua` describes them. `latest` is in microseconds of the server's
/// clock.
fn script_call(command: &str, script: &str, args: &ScriptArgs<'_>, latest: i64, when: When) -> Cmd {
    let keys = args.keys();
    // Only guesses, to allocate the buffers once.
    let size = script.len() + args.batch().len() + 64 * keys.len();
    let mut call = Cmd::with_capacity(6 + keys.len(), 64 + size);
    call.arg(command).arg(script).arg(keys.len());
    keys.for_each(|key| {
        call.arg(key);
    });
    call.arg(args.batch()).arg(latest);
    if let When::At(now) = when {
        call.arg(now.micros());
    }
    call
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::CellKind;
    use catraca_core::codec::Codec;
    use catraca_core::for_each_algorithm;

    use super::SCRIPT;

    macro_rules! algorithm_kinds {
        (() $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*) => {
            [$(<$cell as Codec>::KIND,)*]
        };
    }

    /// What follows each `text` in the list of algorithms, up to the next `end`.
    fn after<'a>(list: &'a str, text: &'a str, end: char) -> impl Iterator<Item = &'a str> {
        list.split(text).skip(1).filter_map(move |rest| rest.split(end).next())
    }

    #[test]
    fn the_script_lists_the_algorithms_of_core() {
        let list = include_str!("algorithms.lua");
        let mut kinds: Vec<CellKind> = for_each_algorithm!(algorithm_kinds).into();
        kinds.sort();
        let expected: Vec<String> = kinds.iter().map(|kind| (*kind as u8).to_string()).collect();
        let listed: Vec<&str> = after(list, "kind == ", ' ').collect();
        assert_eq!(listed, expected);
        let makers: Vec<&str> = after(list, " or make_", '(').collect();
        assert_eq!(makers.len(), expected.len());
        for maker in makers {
            assert!(SCRIPT.contains(&format!("local function make_{maker}()")), "{maker}");
        }
    }
}
