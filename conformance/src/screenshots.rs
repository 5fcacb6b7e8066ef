//! Opens the report of the README's tour in a browser, and takes its pictures.
//!
//! A test leaves them in `target/screenshots`; only `cargo xtask screenshots` replaces those of the
//! README, because every machine draws other pixels.
//!
//! A page must draw without a word on the console and without asking the network for anything; a
//! page that does both is opened first, so that the watch is known to see. Must not compare pixels:
//! fonts differ between machines.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::docs::{tour_room, tour_script};
use crate::{ProcessGuard, Repo, Scratch, TestContext, binary, packages};
use browser::{Browser, PageView, Scheme};

/// Larger pictures make the README slow.
const PICTURE_BYTES_MAX: u64 = 250 * 1024;
/// Smaller ones show nothing.
const PICTURE_BYTES_MIN: u64 = 10 * 1024;
/// A build of the binary, and two pages.
const PATIENCE: Duration = Duration::from_secs(1_800);
const REPORT: &str = "report.html";
/// As a desktop and as a telephone show it.
const WIDE: (u32, u32) = (1280, 1440);
const NARROW: (u32, u32) = (500, 1600);

/// Says something on the console and asks the network for something.
const NOISY: &str = "<!doctype html><title>x</title><script>console.error('noise')</script>\
                     <img src=\"http://127.0.0.1:9/picture.png\">";

/// Where a test leaves the pictures.
const TAKEN: &str = "target/screenshots";
/// The pictures that the README shows.
const PUBLISHED: &str = "docs/images";

/// The part `screenshots`.
pub fn run(context: &TestContext) -> Result<()> {
    take(context, TAKEN)
}

/// `cargo xtask screenshots`: replaces the pictures of the README.
pub fn update(repo: &Repo) -> Result<()> {
    let processes = ProcessGuard::new(PATIENCE);
    take(&TestContext { repo, processes: &processes, factor: 1 }, PUBLISHED)
}

fn take(context: &TestContext, folder: &str) -> Result<()> {
    let scratch = Scratch::new("screenshots")?;
    let browser = Browser { path: packages::need(context, "chromium", "chromium")?, context };
    sees_noise(&browser, scratch.path())?;
    let page = report(context, scratch.path())?;
    for (scheme, name) in [(Scheme::Light, "light"), (Scheme::Dark, "dark")] {
        let narrow = scratch.path().join("narrow.png");
        quiet(&browser.open(&page, scheme, NARROW, &narrow)?)?;
        let picture = scratch.path().join(format!("{name}.png"));
        quiet(&browser.open(&page, scheme, WIDE, &picture)?)?;
        keep(context, &picture, folder, name)?;
    }
    Ok(())
}

/// The page of the tour's own command.
fn report(context: &TestContext, scratch: &Path) -> Result<PathBuf> {
    let binary = binary::build(context)?;
    let desk = scratch.join("tour");
    tour_room(context.repo, "README.md", &desk)?;
    let script = tour_script(context.repo, "README.md", "--report")?;
    let mut bash = context.repo.command("bash");
    let programs = binary.parent().context("the binary has no directory")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs.to_path_buf()).chain(std::env::split_paths(&path));
    bash.args(["-ec", &script]).current_dir(&desk).env("PATH", std::env::join_paths(all)?);
    let status = context.processes.status(bash.stdout(Stdio::null()))?;
    ensure!(status.success(), "the README's commands up to --report: {status}");
    let page = desk.join(REPORT);
    ensure!(page.is_file(), "the README's command with --report does not write {REPORT}");
    Ok(page)
}

fn sees_noise(browser: &Browser, scratch: &Path) -> Result<()> {
    let page = scratch.join("noisy.html");
    fs::write(&page, NOISY)?;
    let seen = browser.open(&page, Scheme::Light, (300, 200), &scratch.join("noisy.png"))?;
    ensure!(!seen.console.is_empty(), "the watch did not hear a console error");
    ensure!(!seen.requests.is_empty(), "the watch did not see a request");
    Ok(())
}

fn quiet(seen: &PageView) -> Result<()> {
    ensure!(seen.console.is_empty(), "on the console: {}", seen.console.join("; "));
    ensure!(seen.requests.is_empty(), "asked for: {}", seen.requests.join(", "));
    Ok(())
}

fn keep(context: &TestContext, picture: &Path, folder: &str, name: &str) -> Result<()> {
    let bytes = fs::metadata(picture).context("the browser drew nothing")?.len();
    let bounds = PICTURE_BYTES_MIN..=PICTURE_BYTES_MAX;
    ensure!(bounds.contains(&bytes), "the {name} picture has {bytes} bytes");
    let place = format!("{folder}/simulate-report-{name}.png");
    fs::create_dir_all(context.repo.path(folder))?;
    fs::copy(picture, context.repo.path(&place))
        .with_context(|| format!("cannot write {place}"))?;
    println!("{place}: {} KiB, quiet, no request", bytes / 1024);
    Ok(())
}
