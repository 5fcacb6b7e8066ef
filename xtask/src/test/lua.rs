//! Compares the Redis script with core, on a real redis-server.
//!
//! Installs the server when it is missing and the machine can: set-up belongs to the run. Must not
//! start the server; the test does, and ends it.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Room;

const SERVER: &str = "redis-server";

pub(crate) fn run(room: &Room) -> Result<()> {
    let server = match find(SERVER) {
        Some(path) => path,
        None => install(room)?,
    };
    let args = ["test", "--workspace", "--profile", "ci", "--test", "lua"];
    let mut cargo = room.repo.cargo(&args);
    room.leash.run(cargo.args(["--", "--nocapture"]).env("CATRACA_REDIS_SERVER", server))
}

fn install(room: &Room) -> Result<PathBuf> {
    let help = "install redis-server by hand and run this part again";
    apt(room, &["update"]).context(help)?;
    apt(room, &["install", "-y", "--no-install-recommends", SERVER]).context(help)?;
    find(SERVER).context(help)
}

/// In run level 1 the package's own scripts start no service.
fn apt(room: &Room, args: &[&str]) -> Result<()> {
    let mut apt = room.repo.command("apt-get");
    apt.args(["-q", "-o", "DPkg::Lock::Timeout=120"]).args(args);
    room.leash.run(apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1"))
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_or_not_at_all() {
        assert!(find("bash").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
