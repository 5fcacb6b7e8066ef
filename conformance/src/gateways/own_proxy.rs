//! Catraca's own reverse proxy, attacked like a gateway. The catalog is that of the guide, with an
//! upstream for every route.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Result;

use super::client::{Route, exchange};
use super::message::{Request, Response};
use super::process::Process;
use super::snippets::{Guide, free_port};
use crate::TestContext;

pub(crate) const NAME: &str = "proxy";

/// The reverse proxy in front of an application; it ends when this is dropped.
pub(crate) struct OwnProxy {
    _process: Process,
    port: u16,
}

impl OwnProxy {
    /// Starts a server of its own, whose proxy forwards to the port of the application.
    pub(crate) fn start(
        context: &TestContext,
        binary: &Path,
        folder: &Path,
        app: u16,
    ) -> Result<Self> {
        let folder = folder.join(NAME);
        fs::create_dir(&folder)?;
        let port = free_port()?;
        let guide = Guide::new(context.repo).catalog()?;
        let upstream = format!("[[route]]\nupstream = \"http://127.0.0.1:{app}\"\n");
        let others = format!("{upstream}match = \"/**\"\ngate = \"site\"\n");
        let proxy = format!("[proxy]\nlisten = \"127.0.0.1:{port}\"\n");
        let catalog = guide.replace("[[route]]\n", &upstream);
        fs::write(folder.join("site.toml"), format!("{catalog}\n{others}{proxy}"))?;
        let mut serve = context.repo.command(&binary.display().to_string());
        serve.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port()?), "--config"]);
        serve.arg(folder.join("site.toml"));
        let process = Process::start(context, &mut serve, &folder, port)?;
        Ok(Self { _process: process, port })
    }
}

impl Route for OwnProxy {
    fn send(&self, from: Ipv4Addr, request: &Request) -> Result<Response> {
        exchange(from, self.port, request)
    }
}
