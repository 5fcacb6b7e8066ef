//! `cargo xtask demo NAME`: a preset behind the reverse proxy, shown by real requests.
//!
//! A demo starts the server with a preset and an upstream of its own, on loopback, sends requests
//! to the proxy, and prints each with its response and the reason. It fails if a response is
//! another than its story says.

mod booking;
mod checkout;
mod dict;
mod dict_traffic;
mod http_client;
mod llm_budget;
mod soft_ban;
mod stage;
mod upstream;
mod window_block;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub use dict_traffic::run as run_dict_traffic;

use crate::{ProcessGuard, Repo, TestContext, binary};

/// For the task on its own, with the build of the server.
const LIMIT: Duration = Duration::from_secs(1_800);

/// The longest that a story may take, without the build of the server.
const STORY: Duration = Duration::from_secs(60);

type Demo = fn(&TestContext, &Path) -> Result<()>;

const DEMOS: [(&str, Demo); 6] = [
    ("soft-ban", soft_ban::run),
    ("dict", dict::run),
    ("window-block", window_block::run),
    ("checkout", checkout::run),
    ("booking", booking::run),
    ("llm-budget", llm_budget::run),
];

/// `cargo xtask demo NAME`
pub fn command(repo: &Repo, args: &[String]) -> Result<()> {
    let [name] = args else { bail!("which demo? {}", names()) };
    let found = DEMOS.iter().find(|(own, _)| own == name);
    let (_, demo) = found.with_context(|| format!("no demo `{name}`; there are {}", names()))?;
    let processes = ProcessGuard::new(LIMIT);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let binary = binary::build(&context)?;
    demo(&context, &binary).and(processes.sweep())
}

/// The `demos` part: all of them.
pub fn run(context: &TestContext) -> Result<()> {
    let binary = binary::build(context)?;
    for (name, demo) in DEMOS {
        println!("\n# demo {name}");
        let start = Instant::now();
        demo(context, &binary).with_context(|| format!("demo {name}"))?;
        let took = start.elapsed();
        println!("# demo {name}: {:.1} s", took.as_secs_f64());
        ensure!(took < STORY, "demo {name} took {took:?}, and a reader has {STORY:?}");
    }
    Ok(())
}

fn names() -> String {
    DEMOS.map(|(name, _)| name).join(", ")
}
