//! Caddy, from Debian.
//!
//! Must not keep state outside the folder of the test.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::gateway::{ConfigFile, Gateway};
use super::snippets::{Guide, Variant, one_gate, replace_block};
use crate::{TestContext, packages};

pub(crate) fn caddy(context: &TestContext) -> Result<Gateway> {
    let program = packages::need(context, "caddy", "caddy")?;
    Ok(Gateway {
        name: "caddy",
        program,
        files,
        command,
        has_body: true,
        has_quota: true,
        has_open: true,
    })
}

fn files(guide: &Guide, variant: Variant) -> Result<Vec<ConfigFile>> {
    let documented = guide.gateway("caddy")?;
    let sites = match variant {
        Variant::Routes => documented,
        Variant::OneGate => one_gate(&documented, "login")?,
        Variant::Open => open(guide, &documented)?,
        Variant::Plain => ":8080 {\n\treverse_proxy 127.0.0.1:3000\n}\n".to_owned(),
    };
    Ok(ConfigFile::alone("Caddyfile", format!("{GLOBAL}{sites}")))
}

fn open(guide: &Guide, documented: &str) -> Result<String> {
    let new = guide.gateway("caddy-open")?;
    let site = replace_block(documented, "\t\tforward_auth ", &new)?;
    Ok(format!("{site}{}", guide.gateway("caddy-allow")?))
}

const GLOBAL: &str = "{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n";

fn command(program: &Path, folder: &Path) -> Command {
    let mut caddy = Command::new(program);
    caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        caddy.env(name, folder);
    }
    caddy
}
