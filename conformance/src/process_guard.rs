//! Nothing a part starts outlives the part.
//!
//! Every child carries a mark in its environment, which its own children inherit; a sweep at the
//! end finds the ones still alive, kills them and reports them. A child that runs past the deadline
//! is killed. Must not put children in process groups of their own: Ctrl-C has to reach them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

const MARK: &str = "CATRACA_PROCESS_GUARD";
const POLL: Duration = Duration::from_millis(20);
/// A process that got a signal may need a moment to end; one that was forgotten never ends.
const GRACE: Duration = Duration::from_secs(1);

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// The processes of one part.
pub struct ProcessGuard {
    mark: String,
    deadline: Instant,
    limit: Duration,
}

impl ProcessGuard {
    /// A guard whose processes may run for `limit` together.
    pub fn new(limit: Duration) -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{serial}", std::process::id());
        Self { mark, deadline: Instant::now() + limit, limit }
    }

    /// Runs a command to its end; any status but success is an error.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        let shown = show(command);
        println!("$ {shown}");
        let status = self.status(command)?;
        ensure!(status.success(), "`{shown}`: {status}");
        Ok(())
    }

    /// Runs a command to its end, or kills it at the deadline.
    pub fn status(&self, command: &mut Command) -> Result<ExitStatus> {
        let status = self.status_in_time(command)?;
        let limit = self.limit.as_secs();
        let shown = show(command);
        status.with_context(|| format!("`{shown}` was killed: its part may take {limit} s"))
    }

    /// Like `status`; `None` for a command that was killed at the deadline.
    pub fn status_in_time(&self, command: &mut Command) -> Result<Option<ExitStatus>> {
        let child = self.spawn(command)?;
        self.wait(child)
    }

    /// Starts a command that its owner ends; one that is left is found by the sweep.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let child = command.env(MARK, &self.mark).spawn();
        child.with_context(|| format!("cannot start `{}`", show(command)))
    }

    fn wait(&self, mut child: Child) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= self.deadline {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// Kills what is left of the part; an error names it.
    pub fn sweep(&self) -> Result<()> {
        let patience = Instant::now() + GRACE;
        let mut left = self.survivors();
        while !left.is_empty() && Instant::now() < patience {
            thread::sleep(POLL);
            left = self.survivors();
        }
        for (pid, _) in &left {
            Command::new("bash").args(["-c", "kill -KILL \"$0\"", pid]).status()?;
        }
        let names: Vec<String> = left.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
        ensure!(names.is_empty(), "left processes behind, now killed: {}", names.join(", "));
        Ok(())
    }

    /// Living processes with our mark; empty where there is no /proc.
    fn survivors(&self) -> Vec<(String, String)> {
        let wanted = format!("{MARK}={}", self.mark);
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter(|entry| carries(&entry.path(), wanted.as_bytes()))
            .map(|entry| {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                (entry.file_name().to_string_lossy().into_owned(), name.trim().to_owned())
            })
            .collect()
    }
}

/// The environment of a zombie reads as empty, so it never counts as alive.
fn carries(process: &Path, wanted: &[u8]) -> bool {
    fs::read(process.join("environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted))
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let processes = ProcessGuard::new(Duration::from_secs(60));
        let error = processes.run(&mut bash("exit 3")).unwrap_err().to_string();
        assert!(error.contains("bash -c exit 3") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_process_left_behind_is_killed_and_reported() {
        let processes = ProcessGuard::new(Duration::from_secs(60));
        processes.run(&mut bash("sleep 1000 &")).unwrap();
        let error = processes.sweep().unwrap_err().to_string();
        assert!(error.contains("sleep"), "{error}");
        processes.sweep().unwrap();
    }

    #[test]
    fn a_command_past_the_deadline_is_killed() {
        let processes = ProcessGuard::new(Duration::ZERO);
        let error = processes.status(&mut bash("exec sleep 1000")).unwrap_err().to_string();
        assert!(error.contains("killed"), "{error}");
        processes.sweep().unwrap();
    }
}
