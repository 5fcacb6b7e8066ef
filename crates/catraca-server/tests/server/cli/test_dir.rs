//! A temporary directory for one test, and the binary run in it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::Value;

/// A directory that is removed when it is dropped.
pub struct TestDir {
    path: PathBuf,
}

/// The exit code and the output of one run of the binary.
#[derive(Debug)]
pub struct CliOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl TestDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    /// A directory with one file.
    pub fn with_file(name: &str, text: &str) -> Self {
        let dir = Self::new();
        dir.write(name, text);
        dir
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path.join(name), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn run(&self, args: &[&str]) -> CliOutput {
        self.run_with_stdin(args, b"")
    }

    /// Runs the binary with this standard input.
    pub fn run_with_stdin(&self, args: &[&str], input: &[u8]) -> CliOutput {
        let mut child = self.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = thread::scope(|scope| {
            // Written by another thread: both pipes may be full, and then this side and the binary
            // would wait for each other. The binary may end before it has read all of its input.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output().unwrap()
        });
        CliOutput::new(output)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catraca"));
        command.args(args).current_dir(&self.path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

impl CliOutput {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Standard output as JSON lines.
    pub fn json(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        self.out.lines().map(read).collect()
    }
}
