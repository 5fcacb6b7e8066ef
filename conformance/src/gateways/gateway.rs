//! What the gateways have in common: a configuration from the guide, a program that runs it.
//!
//! Must not know which gateway it is.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::client::{Route, VISITOR, exchange};
use super::message::{Request, Response};
use super::process::{PATIENCE, POLL, Process};
use super::snippets::{Guide, Ports, Variant, free_port};
use crate::TestContext;

/// A gateway that can be started.
pub(crate) struct Gateway {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) files: fn(&Guide, Variant) -> Result<Vec<ConfigFile>>,
    pub(crate) command: fn(&Path, &Path) -> Command,
    /// Whether Catraca's own body reaches the client.
    pub(crate) has_body: bool,
    /// Whether a client learns its quota from an allowed request.
    pub(crate) has_quota: bool,
    /// Whether it can let requests pass when Catraca does not answer.
    pub(crate) has_open: bool,
}

/// A file of a configuration.
pub(crate) struct ConfigFile {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

impl ConfigFile {
    /// The only file of a configuration.
    pub(crate) fn alone(name: &'static str, text: String) -> Vec<Self> {
        vec![Self { name, text }]
    }
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
        let ports = Ports { gateway: free_port()?, app, catraca, inner: free_port()? };
        for file in (self.files)(&Guide::new(context.repo), variant)? {
            fs::write(folder.join(file.name), ports.fill(&file.text, &folder))?;
        }
        let mut command = (self.command)(&self.program, &folder);
        let process = Process::start(context, &mut command, &folder, ports.gateway)
            .with_context(|| format!("{} ({variant:?})", self.name))?;
        let gateway = RunningGateway { _process: process, port: ports.gateway };
        gateway.wait_for_routes()?;
        Ok(gateway)
    }
}

impl RunningGateway {
    /// Traefik listens before it has read its routes, and answers 404 until then.
    fn wait_for_routes(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.send(VISITOR, &Request::get("/"))?.status == 404 {
            ensure!(Instant::now() < deadline, "the gateway has no routes");
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Route for RunningGateway {
    fn send(&self, from: Ipv4Addr, request: &Request) -> Result<Response> {
        exchange(from, self.port, request)
    }
}
