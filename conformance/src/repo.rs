//! The checkout as the tasks see it: a root, and the files git knows or would add.
//!
//! New files count before they are added, so that nothing escapes a check by being uncommitted.
//! Must not write to the checkout.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// An opened checkout.
pub struct Repo {
    root: PathBuf,
}

impl Repo {
    /// Finds the checkout this task was built from.
    pub fn open() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("conformance has no parent directory")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// The full path of a file of the checkout.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The text of a file of the checkout.
    pub fn read(&self, relative: &str) -> Result<String> {
        fs::read_to_string(self.path(relative)).with_context(|| format!("cannot read {relative}"))
    }

    /// Relative paths of all files of the project, sorted; ignored ones left out.
    pub fn files(&self) -> Result<Vec<String>> {
        let output = self
            .command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .context("cannot run git")?;
        ensure!(output.status.success(), "git ls-files failed: {}", output.status);
        let text = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<String> =
            text.split_terminator('\0').map(str::to_owned).filter(|f| self.is_file(f)).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// A command that runs at the root of the checkout.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The cargo that started us, so that one toolchain builds everything.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.current_dir(&self.root).args(args);
        command
    }

    /// Files deleted but still known to git are no longer part of the project.
    fn is_file(&self, relative: &str) -> bool {
        self.path(relative).is_file()
    }
}
