//! Verbs about files of this machine: backup, restore, completions, man.

use std::path::PathBuf;

use clap_complete::Shell;

const BACKUP: &str = "\
Examples:
  catraca backup --config shop.toml monday.db
  catraca backup --records catraca.db monday.db

The server may go on meanwhile: the copy is of one instant, and appears whole or not at all. Back
the secret up too, and apart: without it no block of these records can be found again.";

/// Copies the records to a file, while the server goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP)]
pub struct Backup {
    #[command(flatten)]
    pub place: Place,
    /// Where the copy goes; it must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

const RESTORE: &str = "\
Examples:
  catraca restore --config shop.toml monday.db
  catraca restore --config shop.toml monday.db --force     what was there becomes catraca.db.old

Stop the server first. A backup that is damaged, of a newer version or of another program is
refused, and nothing is changed.";

/// Puts a backup back where records are to be.
#[derive(Debug, clap::Args)]
#[command(after_help = RESTORE)]
pub struct Restore {
    #[command(flatten)]
    pub place: Place,
    /// The backup
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Put it in place of records that are there; those are kept beside it
    #[arg(long)]
    pub force: bool,
}

/// Where the records are.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Place {
    /// The catalog, which says where they are
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Their file itself
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

const COMPLETIONS: &str = "\
Examples:
  catraca completions bash > ~/.local/share/bash-completion/completions/catraca
  catraca completions zsh > \"${fpath[1]}/_catraca\"
  catraca completions fish > ~/.config/fish/completions/catraca.fish";

/// A script that completes verbs and options on the command line.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "bash|zsh|fish|powershell|elvish", hide_possible_values = true)]
    pub shell: Shell,
}

const MAN: &str = "\
Examples:
  catraca man | man -l -
  catraca man ~/.local/share/man/man1        one page per verb";

/// The manual pages.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN)]
pub struct Man {
    /// A directory for one page per verb; without it, the first page is printed
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
