//! HAProxy, from Debian, in the foreground, with the script of the guide.
//!
//! Must not touch the machine's own configuration.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::gateway::{ConfigFile, Gateway};
use super::snippets::{Guide, Variant, one_gate, replace_block};
use crate::{TestContext, packages};

const CONFIG: &str = "haproxy.cfg";
const CALL: &str = "    http-request lua.catraca";
const GUARD: &str = "    http-request deny deny_status 503";

pub(crate) fn haproxy(context: &TestContext) -> Result<Gateway> {
    let program = packages::need(context, "haproxy", "haproxy")?;
    Ok(Gateway {
        name: "haproxy",
        program,
        files,
        command,
        has_body: true,
        has_quota: true,
        has_open: true,
    })
}

/// With a script that fails at each request.
pub(crate) fn with_broken_script(context: &TestContext) -> Result<Gateway> {
    let files = |guide: &Guide, variant| {
        let mut files = files(guide, variant)?;
        for file in &mut files {
            file.text = file.text.replace("core.httpclient()", "core.no_such_function()");
        }
        Ok(files)
    };
    Ok(Gateway { name: "haproxy-broken", files, ..haproxy(context)? })
}

fn files(guide: &Guide, variant: Variant) -> Result<Vec<ConfigFile>> {
    let config = guide.gateway("haproxy")?;
    let script = guide.gateway("haproxy-lua")?;
    let config = match variant {
        Variant::Open => replace_block(&config, GUARD, &guide.gateway("haproxy-open")?)?,
        Variant::Plain => replace_block(&replace_block(&config, CALL, "")?, GUARD, "")?,
        Variant::Routes | Variant::OneGate => config,
    };
    let script = match variant {
        Variant::OneGate => one_gate(&script, "login")?,
        _ => script,
    };
    let script = ConfigFile { name: "catraca.lua", text: script };
    Ok(vec![ConfigFile { name: CONFIG, text: config }, script])
}

/// With `-db` there is one process, which can be ended by its id.
fn command(program: &Path, folder: &Path) -> Command {
    let mut haproxy = Command::new(program);
    haproxy.arg("-db").arg("-f").arg(folder.join(CONFIG));
    haproxy
}
