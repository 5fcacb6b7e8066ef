//! Traefik, built below `target/`. It has no open variant, and its clients get no quota.
//!
//! Must not change what a configuration of the guide does.

mod build;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::gateway::{ConfigFile, Gateway};
use super::snippets::{Guide, Variant, one_gate, replace_block};
use crate::TestContext;

pub(crate) const NAME: &str = "traefik";
const CONFIG: &str = "traefik.yml";
/// Traefik would ask the network for a newer version.
const GLOBAL: &str = "global:\n  checkNewVersion: false\n";

pub(crate) fn traefik(context: &TestContext) -> Result<Gateway> {
    let program = build::need(context)?;
    Ok(Gateway {
        name: NAME,
        program,
        files,
        command,
        has_body: true,
        has_quota: false,
        has_open: false,
    })
}

fn files(guide: &Guide, variant: Variant) -> Result<Vec<ConfigFile>> {
    let documented = guide.gateway("traefik")?;
    let dynamic = match variant {
        Variant::Routes => documented,
        Variant::OneGate => one_gate(&documented, "login")?,
        Variant::Plain => replace_block(&documented, "      middlewares: ", "")?,
        Variant::Open => bail!("traefik has no variant that lets requests pass without Catraca"),
    };
    let fixed = format!("{GLOBAL}{}", guide.gateway("traefik-static")?);
    let dynamic = ConfigFile { name: "dynamic.yml", text: dynamic };
    Ok(vec![ConfigFile { name: CONFIG, text: fixed }, dynamic])
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut traefik = Command::new(program);
    traefik.arg(format!("--configFile={}", folder.join(CONFIG).display()));
    traefik
}
