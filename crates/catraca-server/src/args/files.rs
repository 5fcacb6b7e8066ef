//! Arguments of the verbs that work on local files: backup, restore, completions, man.

use std::path::PathBuf;

use clap_complete::Shell;

const BACKUP: &str = "\
Examples:
  catraca backup -c shop.toml monday.db
  catraca backup --records catraca.db monday.db

The server may keep running: the backup is a consistent copy, and is written completely or not at
all. Back up the secret too, in another place: without it no block of these records can be found.";

/// Copy the records to a file while the server runs.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP)]
pub struct BackupArgs {
    #[command(flatten)]
    pub location: RecordsLocationArgs,
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

const RESTORE: &str = "\
Examples:
  catraca restore -c shop.toml monday.db
  catraca restore -c shop.toml monday.db --force     existing records become catraca.db.old

Stop the server first. A file that is damaged, was written by a newer version or belongs to another
program is refused, and nothing is changed.";

/// Restore the records from a backup.
#[derive(Debug, clap::Args)]
#[command(after_help = RESTORE)]
pub struct RestoreArgs {
    #[command(flatten)]
    pub location: RecordsLocationArgs,
    /// The backup
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace existing records; they are renamed, not deleted
    #[arg(long)]
    pub force: bool,
}

/// Where the records are: the catalog that names them, or their file.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct RecordsLocationArgs {
    /// The catalog that names the records
    #[arg(short, long, alias = "config", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// The file of the records
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
}

const COMPLETIONS: &str = "\
Examples:
  catraca completions bash > ~/.local/share/bash-completion/completions/catraca
  catraca completions zsh > \"${fpath[1]}/_catraca\"
  catraca completions fish > ~/.config/fish/completions/catraca.fish";

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "bash|zsh|fish|powershell|elvish", hide_possible_values = true)]
    pub shell: Shell,
}

const MAN: &str = "\
Examples:
  catraca man | man -l -
  catraca man ~/.local/share/man/man1        one page per verb";

/// Print or write the manual pages.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN)]
pub struct ManArgs {
    /// A directory for one page per verb; by default, the main page is printed
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
