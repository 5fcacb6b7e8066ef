//! A headless browser: opens one page, takes a screenshot, and reports console messages and
//! requests.
//!
//! Must not reach the network: no name is resolved but that of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Scratch, TestContext};

/// A browser to run.
pub(crate) struct Browser<'a> {
    pub(crate) path: PathBuf,
    pub(crate) context: &'a TestContext<'a>,
}

/// Which colours the reader prefers.
#[derive(Clone, Copy)]
pub(crate) enum Scheme {
    Dark = 0,
    Light = 1,
}

/// What a page did.
pub(crate) struct PageView {
    /// Lines on its console.
    pub(crate) console: Vec<String>,
    /// What it asked the network for.
    pub(crate) requests: Vec<String>,
}

impl Browser<'_> {
    /// Opens a page and takes its picture.
    pub(crate) fn open(
        &self,
        page: &Path,
        scheme: Scheme,
        (width, height): (u32, u32),
        picture: &Path,
    ) -> Result<PageView> {
        let profile = Scratch::new("browser")?;
        let net = profile.path().join("net.json");
        let log = profile.path().join("log");
        let shown = |path: &Path| path.display().to_string();
        let mut browser = self.context.repo.command(&shown(&self.path));
        browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        browser.args(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
        browser.args(["--disable-component-update", "--disable-dev-shm-usage"]);
        browser.arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1");
        browser.arg(format!("--user-data-dir={}", shown(&profile.path().join("profile"))));
        browser.arg(format!("--log-net-log={}", shown(&net)));
        browser.arg("--enable-logging=stderr").stderr(fs::File::create(&log)?);
        browser.arg(format!("--blink-settings=preferredColorScheme={}", scheme as u8));
        browser.arg(format!("--window-size={width},{height}"));
        browser.arg(format!("--screenshot={}", shown(picture)));
        browser.arg(format!("file://{}", shown(page)));
        let status = self.context.processes.status(&mut browser)?;
        ensure!(status.success() && picture.is_file(), "the browser drew nothing: {status}");
        let log = fs::read_to_string(&log)?;
        let net = fs::read_to_string(&net).context("the browser wrote no network log")?;
        Ok(PageView { console: console(&log), requests: requests(&net)? })
    }
}

/// The lines of a page's console in the browser's log.
fn console(log: &str) -> Vec<String> {
    let said = log.lines().filter_map(|line| line.split_once(":CONSOLE").map(|(_, said)| said));
    said.map(str::to_owned).collect()
}

/// What pages asked for in a network log; what the browser asks for itself has no origin.
fn requests(log: &str) -> Result<Vec<String>> {
    let log: Value = serde_json::from_str(log).context("the network log is no JSON")?;
    let events = log["events"].as_array().context("the network log has no events")?;
    let asked = events.iter().filter_map(|event| {
        let params = &event["params"];
        let url = params["url"].as_str()?;
        let by_page = params["initiator"].as_str().is_some_and(|by| by != "not an origin");
        by_page.then(|| url.to_owned())
    });
    Ok(asked.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_console_is_heard() {
        let log = "[1:ERROR:dbus] x\n[1:INFO:CONSOLE:3] \"noise\", source: a (1)\n12 bytes written";
        assert_eq!(console(log), [":3] \"noise\", source: a (1)"]);
    }

    #[test]
    fn only_requests_of_a_page_are_seen() {
        let log = r#"{"constants":{},"events":[
            {"params":{"url":"https://a/","initiator":"not an origin"}},
            {"params":{"url":"http://b/","initiator":"null"}},
            {"type":3},{"params":{"host":"c"}}]}"#;
        assert_eq!(requests(log).unwrap(), ["http://b/"]);
        assert!(requests("{").is_err());
    }
}
