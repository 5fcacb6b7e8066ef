//! Programs that a part needs and that the project does not build: found, or installed.
//!
//! Set-up belongs to the run. Must not start them; the part does, and ends them.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Room;

/// The path of a program, after installing the package of its name if it is missing.
pub(crate) fn find_or_install(room: &Room, program: &str) -> Result<PathBuf> {
    if let Some(path) = find(program) {
        return Ok(path);
    }
    let help = || format!("install {program} by hand and run this part again");
    apt(room, &["update"]).with_context(help)?;
    apt(room, &["install", "-y", "--no-install-recommends", program]).with_context(help)?;
    find(program).with_context(help)
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
