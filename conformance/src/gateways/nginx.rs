//! nginx, from Debian, in one process.
//!
//! Must not touch the machine's own configuration.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::gateway::{ConfigFile, Gateway};
use super::snippets::{Guide, Variant, one_gate, replace_block};
use crate::{TestContext, packages};

/// With `auth_request`, and with the whole answer.
pub(crate) fn both(context: &TestContext) -> Result<[Gateway; 2]> {
    let program = packages::need(context, "nginx", "nginx")?;
    let gateway = |name, files: fn(&Guide, Variant) -> Result<Vec<ConfigFile>>, has_body| Gateway {
        name,
        program: program.clone(),
        files,
        command,
        has_body,
        has_quota: true,
        has_open: true,
    };
    Ok([
        gateway("nginx", |guide, variant| files(guide, variant, "nginx"), false),
        gateway("nginx-answer", |guide, variant| files(guide, variant, "nginx-answer"), true),
    ])
}

fn files(guide: &Guide, variant: Variant, name: &str) -> Result<Vec<ConfigFile>> {
    let documented = guide.gateway(name)?;
    let sites = match variant {
        Variant::Routes => documented,
        Variant::OneGate => one_gate(&documented, "login")?,
        Variant::Open => {
            replace_block(&documented, "upstream catraca", &guide.gateway("nginx-open")?)?
        }
        Variant::Plain => PLAIN.to_owned(),
    };
    let config = format!("{MAIN}http {{\n{TEMPORARY}{sites}}}\n");
    Ok(ConfigFile::alone("nginx.conf", config))
}

/// One process can be ended by its id; `/run/` becomes the folder of the test.
const MAIN: &str =
    "daemon off;\nmaster_process off;\npid /run/pid;\nerror_log stderr;\nevents {}\n";
const TEMPORARY: &str = "access_log off;\nclient_body_temp_path /run/body;\n\
    proxy_temp_path /run/proxy;\nfastcgi_temp_path /run/fastcgi;\nuwsgi_temp_path /run/uwsgi;\n\
    scgi_temp_path /run/scgi;\n";

const PLAIN: &str = "upstream app { server 127.0.0.1:3000; keepalive 16; }
server {
    listen 8080;
    location / {
        proxy_http_version 1.1;
        proxy_set_header Connection \"\";
        proxy_pass http://app;
    }
}
";

fn command(program: &Path, folder: &Path) -> Command {
    let mut nginx = Command::new(program);
    nginx.arg("-e").arg("stderr").arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    nginx
}
