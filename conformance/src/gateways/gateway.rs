//! What the gateways have in common: a configuration from the guide, a program that runs it.
//!
//! Must not know which gateway it is.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::client::{Route, exchange};
use super::message::{Request, Response};
use super::process::Process;
use super::snippets::{Guide, Ports, Variant, free_port};
use crate::TestContext;

/// A gateway that can be started.
pub(crate) struct Gateway {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    /// The name of its configuration.
    pub(crate) file: &'static str,
    pub(crate) config: fn(&Guide, Variant) -> Result<String>,
    pub(crate) command: fn(&Path, &Path) -> Command,
    /// Whether Catraca's own body reaches the client.
    pub(crate) has_body: bool,
}

/// The ports of what a gateway connects to.
#[derive(Clone, Copy)]
pub(crate) struct Backends {
    pub(crate) app: u16,
    pub(crate) catraca: u16,
}

/// A gateway that was started; it ends when this is dropped.
pub(crate) struct RunningGateway {
    _process: Process,
    port: u16,
}

impl Gateway {
    /// Starts it in a new folder, with a configuration of the guide.
    pub(crate) fn start(
        &self,
        context: &TestContext,
        desk: &Path,
        variant: Variant,
        backends: Backends,
    ) -> Result<RunningGateway> {
        let folder = desk.join(format!("{}-{variant:?}", self.name));
        fs::create_dir(&folder)?;
        let Backends { app, catraca } = backends;
        let ports = Ports { gateway: free_port()?, app, catraca, allow: free_port()? };
        let config = (self.config)(&Guide::new(context.repo), variant)?;
        fs::write(folder.join(self.file), ports.fill(&config, &folder))?;
        let mut command = (self.command)(&self.program, &folder);
        let process = Process::start(context, &mut command, &folder, ports.gateway)
            .with_context(|| format!("{} ({variant:?})", self.name))?;
        Ok(RunningGateway { _process: process, port: ports.gateway })
    }
}

impl Route for RunningGateway {
    fn send(&self, from: Ipv4Addr, request: &Request) -> Result<Response> {
        exchange(from, self.port, request)
    }
}
