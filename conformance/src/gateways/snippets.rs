//! The configurations of the guide, as its reader would paste them.
//!
//! Only ports and paths of the machine are replaced. Must not change what a configuration does.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{Repo, docs};

const GUIDE: &str = "docs/guide/gateways.md";
const CALL: &str = "/v1/authorize";

/// Which of the documented configurations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Variant {
    /// The first configuration of the guide: routes choose the gate, and without an answer every
    /// request is refused.
    Routes,
    /// With the gate in the path of the call.
    OneGate,
    /// With the lines that let requests pass when Catraca does not answer.
    Open,
    /// Without Catraca, to compare times; this one is not in the guide.
    Plain,
}

/// The guide, block by block.
pub(crate) struct Guide<'a> {
    repo: &'a Repo,
}

impl<'a> Guide<'a> {
    pub(crate) fn new(repo: &'a Repo) -> Self {
        Self { repo }
    }

    /// The block that is tagged `gateway=NAME`.
    pub(crate) fn gateway(&self, name: &str) -> Result<String> {
        docs::tagged_block(self.repo, GUIDE, &format!("gateway={name}"))
    }

    /// The catalog that the configurations are for.
    pub(crate) fn catalog(&self) -> Result<String> {
        docs::tagged_block(self.repo, GUIDE, "file=site.toml")
    }
}

/// Puts a gate into the path of the call, as the guide says it.
pub(crate) fn one_gate(config: &str, gate: &str) -> Result<String> {
    ensure!(config.matches(CALL).count() == 1, "the configuration has not one `{CALL}`");
    Ok(config.replace(CALL, &format!("/v1/gates/{gate}/authorize")))
}

/// Replaces the line that starts with `first`, and if it opens a block, all of the block.
pub(crate) fn replace_block(text: &str, first: &str, new: &str) -> Result<String> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.starts_with(first));
    let start = start.with_context(|| format!("no line starts with `{first}`"))?;
    let mut end = start;
    if let Some(opening) = lines[start].strip_suffix('{') {
        let indent = &opening[..opening.len() - opening.trim_start().len()];
        let closing = format!("{indent}}}");
        let length = lines[start..].iter().position(|line| *line == closing);
        end += length.with_context(|| format!("the block of `{first}` has no end"))?;
    }
    let kept = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    Ok(format!("{}{new}{}", kept(&lines[..start]), kept(&lines[end + 1..])))
}

/// The ports that stand for those of the guide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) gateway: u16,
    pub(crate) app: u16,
    pub(crate) catraca: u16,
    /// Where Caddy answers for a Catraca that does not, and where HAProxy calls it.
    pub(crate) inner: u16,
}

impl Ports {
    /// The configuration with these ports, on loopback, with its sockets in a folder.
    pub(crate) fn fill(&self, config: &str, folder: &Path) -> String {
        let ports = [
            ("8080", self.gateway),
            ("3000", self.app),
            ("7878", self.catraca),
            ("7879", self.inner),
        ];
        let mut text = config
            .replace("listen 8080", "listen 127.0.0.1:8080")
            .replace("bind :8080", "bind 127.0.0.1:8080")
            .replace("\":8080\"", "127.0.0.1:8080")
            .replace("0.0.0.0", "127.0.0.1");
        for own in ["/run/", "/etc/haproxy/", "/etc/traefik/"] {
            text = text.replace(own, &format!("{}/", folder.display()));
        }
        // In two steps, because a new port may look like an old one.
        for (index, (old, _)) in ports.iter().enumerate() {
            text = text.replace(&format!(":{old}"), &format!(":<{index}>"));
            text = text.replace(&format!(": {old}"), &format!(": <{index}>"));
        }
        for (index, (_, new)) in ports.iter().enumerate() {
            text = text.replace(&format!("<{index}>"), &new.to_string());
        }
        text
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_filled_in_even_if_they_look_alike() {
        let ports = Ports { gateway: 30007, app: 17878, catraca: 13000, inner: 28080 };
        let config = "listen 8080;\nport_value: 3000\nserver 127.0.0.1:7878;\nunix:/run/a.sock\n\
                      lua-load /etc/haproxy/a.lua\nbind :8080\naddress: \":8080\"\n";
        let filled = ports.fill(config, Path::new("/s"));
        let expected = "listen 127.0.0.1:30007;\nport_value: 17878\nserver 127.0.0.1:13000;\n\
                        unix:/s/a.sock\nlua-load /s/a.lua\nbind 127.0.0.1:30007\n\
                        address: 127.0.0.1:30007\n";
        assert_eq!(filled, expected);
    }

    #[test]
    fn a_line_is_replaced_with_its_block() {
        let text = "a\n\tb {\n\t\tc {\n\t\t}\n\t}\nd\n";
        assert_eq!(replace_block(text, "\tb", "e\n").unwrap(), "a\ne\nd\n");
        assert_eq!(replace_block(text, "d", "e\n").unwrap(), text.replace('d', "e"));
        assert!(replace_block(text, "x", "").is_err());
    }

    #[test]
    fn the_gate_goes_into_the_only_call() {
        assert_eq!(one_gate("uri /v1/authorize\n", "a").unwrap(), "uri /v1/gates/a/authorize\n");
        assert!(one_gate("uri /v1/check\n", "a").is_err());
    }
}
