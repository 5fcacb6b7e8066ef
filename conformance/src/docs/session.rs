//! Runs the steps of one document in one bash, in a directory of its own.
//!
//! One shell, so that variables, `cd` and background jobs carry over as they do for a reader; its
//! jobs end with it. A server gets a free port in place of the default one, which is put back where
//! it is shown. Must not judge the output.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::markdown::Step;
use super::ports::DocumentPorts;
use crate::{ProcessGuard, Scratch};

/// Starts a server, and continues when it listens or has exited. The shell kills it by its id.
const START: &str = r#"(. "$step.command") >"$step.out" 2>&1 &
server=$!
until grep -qs 'listens on' "$step.out" || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
kill -0 $server 2>/dev/null; status=$?
echo $status >"$step.status""#;

/// Starts a PostgreSQL with the user and the database `catraca`, as another user if we are root.
/// The shell ends it with its other jobs.
const START_POSTGRES: &str = r#"run=()
mkdir "$SCRIPT_DIR/postgres"
if [ "$(id -u)" = 0 ]; then
  run=(setpriv --reuid postgres --regid postgres --clear-groups --)
  chown postgres "$SCRIPT_DIR/postgres"
fi
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
(cd "$SCRIPT_DIR/postgres" && "${run[@]}" "$bin/initdb" -D data -U catraca -A trust --no-sync &&
  exec "${run[@]}" "$bin/postgres" -D data -k "$PWD" -p "$port" -c fsync=off \
    -c listen_addresses=127.0.0.1) >"$SCRIPT_DIR/postgres.log" 2>&1 &
postgres=$!
until "$bin/createdb" -h 127.0.0.1 -p "$port" -U catraca catraca 2>/dev/null ||
  ! kill -0 $postgres 2>/dev/null; do sleep 0.1; done
unset run bin port postgres
"#;

/// What a command answered; no status when the session ended before it.
pub(crate) struct Reply {
    pub(crate) output: String,
    pub(crate) status: Option<i32>,
}

/// Runs all steps and returns one reply per command.
pub(crate) fn run(
    processes: &ProcessGuard,
    programs: &Path,
    presets: &Path,
    steps: &[Step],
) -> Result<Vec<Reply>> {
    let scratch = Scratch::new("docs")?;
    let work_dir = scratch.path().join("work_dir");
    let script_dir = scratch.path().join("script_dir");
    create_work_dir(&work_dir, presets)?;
    fs::create_dir(&script_dir)?;
    let ports = DocumentPorts::of(steps)?;
    write(&script_dir, steps, &ports)?;
    processes.status(&mut bash(programs, &work_dir, &script_dir)?)?;
    let commands = steps.iter().enumerate().filter(|(_, step)| step.command().is_some());
    commands.map(|(index, _)| reply(&script_dir, index, &ports)).collect()
}

/// A fresh directory with the presets in it.
pub(crate) fn create_work_dir(work_dir: &Path, presets: &Path) -> Result<()> {
    fs::create_dir(work_dir)?;
    copy(presets, &work_dir.join("presets")).context("cannot copy the presets")
}

/// The environment is plain, so that the output does not depend on who runs it.
fn bash(programs: &Path, work_dir: &Path, script_dir: &Path) -> Result<Command> {
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc"]).arg(script_dir.join("script")).current_dir(work_dir);
    bash.stdin(Stdio::null()).env("PATH", search_path(programs)?);
    bash.env("SCRIPT_DIR", script_dir).env("WORK_DIR", work_dir).env("HOME", work_dir);
    bash.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("TERM", "dumb").env("NO_COLOR", "1");
    // Presets have a proxy with a fixed port, which another document may use.
    bash.env("PROXY_LISTEN", "127.0.0.1:0");
    Ok(bash)
}

fn search_path(programs: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs.to_path_buf()).chain(env::split_paths(&path));
    env::join_paths(all).context("the search path cannot be built")
}

/// Each command is a file of its own that the script sources: a syntax error stays in its command,
/// and `$?` passes from one to the next.
fn write(script_dir: &Path, steps: &[Step], ports: &DocumentPorts) -> Result<()> {
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nstatus=0\n".to_owned();
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::File { name, body } => {
                fs::write(script_dir.join(format!("{index}.file")), ports.apply(body))?;
                writeln!(script, "mkdir -p \"$(dirname \"$WORK_DIR/{name}\")\"")?;
                writeln!(script, "cp \"$SCRIPT_DIR/{index}.file\" \"$WORK_DIR/{name}\"")?;
            }
            Step::Command(command) => {
                let text = ports.apply(&command.text);
                fs::write(script_dir.join(format!("{index}.command")), text)?;
                let source =
                    format!(". \"$SCRIPT_DIR/{index}.command\" >\"$SCRIPT_DIR/{index}.out\" 2>&1");
                writeln!(script, "(exit $status); {source}; status=$?")?;
                writeln!(script, "echo $status >\"$SCRIPT_DIR/{index}.status\"")?;
            }
            Step::Serve(command) => {
                let address = ports.address();
                let text = format!("exec {} --listen {address}", command.text);
                fs::write(script_dir.join(format!("{index}.command")), text)?;
                writeln!(script, "step=$SCRIPT_DIR/{index}\n{START}")?;
            }
            Step::Postgres => {
                writeln!(script, "port={}\n{START_POSTGRES}", ports.postgres())?;
            }
        }
    }
    Ok(fs::write(script_dir.join("script"), script)?)
}

fn reply(script_dir: &Path, index: usize, ports: &DocumentPorts) -> Result<Reply> {
    let status = fs::read_to_string(script_dir.join(format!("{index}.status"))).ok();
    let status = status.map(|text| text.trim().parse()).transpose()?;
    let output = fs::read(script_dir.join(format!("{index}.out"))).unwrap_or_default();
    let output = ports.restore(&String::from_utf8_lossy(&output));
    Ok(Reply { output, status })
}

/// Copies a directory; one that is not there is left out.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::markdown::parse;
    use super::*;

    fn replies(markdown: &str) -> Vec<(String, Option<i32>)> {
        let presets = Scratch::new("presets").unwrap();
        fs::create_dir(presets.path().join("one")).unwrap();
        fs::write(presets.path().join("one/catalog.toml"), "preset\n").unwrap();
        let processes = ProcessGuard::new(Duration::from_secs(60));
        let steps = parse(markdown).unwrap();
        let replies = run(&processes, presets.path(), presets.path(), &steps).unwrap();
        processes.sweep().unwrap();
        replies.into_iter().map(|reply| (reply.output, reply.status)).collect()
    }

    fn outputs(markdown: &str) -> Vec<String> {
        replies(markdown).into_iter().map(|(output, _)| output).collect()
    }

    #[test]
    fn files_and_presets_are_there_and_the_shell_carries_over() {
        let text = "```toml,file=sub/a.toml\nx = 1\n```\n```console\n$ x=5; cd sub\n$ cat a.toml\n\
                    $ echo $x; cat ../presets/one/catalog.toml\n```\n";
        assert_eq!(outputs(text), ["", "x = 1\n", "5\npreset\n"]);
    }

    #[test]
    fn the_status_passes_to_the_next_command() {
        let found = replies("```console\n$ (exit 3)\n$ echo $?\n```\n");
        assert_eq!(found, [(String::new(), Some(3)), ("3\n".to_owned(), Some(0))]);
    }

    #[test]
    fn errors_are_output_and_a_syntax_error_stays_in_its_command() {
        let found = replies("```console\n$ echo out; echo err >&2\n$ if\n$ echo on\n```\n");
        assert_eq!(found[0].0, "out\nerr\n");
        assert!(found[1].1.is_some_and(|status| status != 0));
        assert_eq!(found[2].0, "on\n");
    }

    #[test]
    fn what_follows_an_exit_did_not_run() {
        assert_eq!(replies("```console\n$ exit 0\n$ echo on\n```\n")[1].1, None);
    }

    #[test]
    fn a_server_is_waited_for_has_a_port_of_its_own_and_ends_with_the_session() {
        let program = "#!/bin/bash\necho \"It listens on http://$5\"; exec sleep 1000\n";
        let text = format!(
            "```sh,file=bin/catraca\n{program}```\n```console\n$ chmod +x bin/catraca; \
             PATH=$PWD/bin:$PATH\n```\n```console,serve\n$ catraca serve --config x\n```\n\
             ```console\n$ echo http://127.0.0.1:7878/\n```\n"
        );
        let found = replies(&text);
        assert_eq!(found[1], ("It listens on http://127.0.0.1:7878\n".to_owned(), Some(0)));
        assert_eq!(found[2].0, "http://127.0.0.1:7878/\n");
    }

    #[test]
    fn a_server_that_does_not_start_is_a_failure() {
        let text = "```console,serve\n$ catraca serve\n```\n";
        assert!(replies(text)[0].1.is_some_and(|status| status != 0));
    }

    #[test]
    fn background_jobs_end_with_the_session() {
        assert_eq!(outputs("```console\n$ sleep 1000 &\n$ echo on\n```\n")[1], "on\n");
    }
}
