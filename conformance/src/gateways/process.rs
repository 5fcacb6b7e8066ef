//! A program that listens on a port until its owner is dropped.
//!
//! Must not leave a process: it is ended by its id.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::TestContext;

/// How long a program may take to listen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// A running program.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program and waits until it accepts connections on a port.
    pub(crate) fn start(
        context: &TestContext,
        command: &mut Command,
        folder: &Path,
        port: u16,
    ) -> Result<Self> {
        let log = folder.join("log");
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let mut process = Self { child: context.processes.spawn(command)?, log };
        process.wait_for(port)?;
        Ok(process)
    }

    /// Ends it; does nothing if it has ended.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn wait_for(&mut self, port: u16) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() >= deadline {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let state = ended.map_or("still running".to_owned(), |status| status.to_string());
                bail!("the program does not listen on port {port} ({state}):\n{log}");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}
