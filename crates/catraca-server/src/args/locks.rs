//! `catraca locks` and `catraca slots`: who holds what, and until when.

use clap::Subcommand;

use super::{Paging, Remote};

const LOCKS: &str = "\
Examples:
  catraca locks list                              what is held now
  catraca locks list --tenant t1 --kind payment   of one tenant and kind
  catraca locks stats                             what became of all attempts
  catraca locks release 1769860800000000 --why 'its holder is gone'
  catraca locks clear t1 --why 'the tenant asked'

Exits 1 if there is no such lease.";

/// Leases in force: who holds what, until when; ending them.
#[derive(Debug, clap::Args)]
#[command(after_help = LOCKS)]
pub struct Locks {
    #[command(flatten)]
    pub remote: Remote,
    /// What to do
    #[command(subcommand)]
    pub verb: LocksVerb,
}

/// What to do with locks.
#[derive(Debug, Subcommand)]
pub enum LocksVerb {
    /// Those in force, oldest first
    List {
        /// Only of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Only of this kind
        #[arg(long, value_name = "NAME")]
        kind: Option<String>,
        /// Only names that begin like this
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// End a lease, or a slot, by its number
    Release {
        /// Its number, as `list` shows it
        fence: u64,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: String,
        /// How long its names stay taken, in milliseconds; 5000 unless given
        #[arg(long, value_name = "MS")]
        cool_down_ms: Option<u32>,
    },
    /// End all that a tenant holds; confirmed slots stay
    Clear {
        /// The tenant
        tenant: String,
        /// Goes to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// What became of all attempts, by tenant and kind
    Stats,
}

const SLOTS: &str = "\
Examples:
  catraca slots list shop-1/ana --from 2026-01-31T08:00:00Z --to 2026-01-31T18:00:00Z
  catraca slots hold shop-1/ana --from 2026-01-31T12:00:00Z --to 2026-01-31T12:30:00Z
  catraca slots confirm LEASE
  catraca slots move LEASE --from 2026-01-31T14:00:00Z --to 2026-01-31T14:30:00Z
  catraca slots cancel LEASE

LEASE is what `hold` prints. Exits 1 if somebody else has the time, or the lease is over.";

/// Ranges of time in calendars: what is free, holding and confirming.
#[derive(Debug, clap::Args)]
#[command(after_help = SLOTS)]
pub struct Slots {
    #[command(flatten)]
    pub remote: Remote,
    /// Whose calendars
    #[arg(long, global = true, value_name = "NAME")]
    pub tenant: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub verb: SlotsVerb,
}

/// A range of time.
#[derive(Debug, clap::Args)]
pub struct Range {
    /// The first instant
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// The first instant after it
    #[arg(long, value_name = "TIME")]
    pub to: String,
}

/// What to do with slots.
#[derive(Debug, Subcommand)]
pub enum SlotsVerb {
    /// What is taken and what is free
    List {
        /// The calendar
        calendar: String,
        #[command(flatten)]
        range: Range,
        /// Leave out shorter gaps, in milliseconds
        #[arg(long, value_name = "MS")]
        min_length_ms: Option<u64>,
    },
    /// Hold a range of time, in all calendars or none
    Hold {
        /// The calendars
        #[arg(required = true)]
        calendar: Vec<String>,
        #[command(flatten)]
        range: Range,
        /// How long it is held, in milliseconds
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// Take what is held for good
    Confirm {
        /// What `hold` printed
        lease: String,
        /// Take it anew if the hold is over and nobody else has it
        #[arg(long)]
        reacquire_if_free: bool,
    },
    /// Put a slot somewhere else
    Move {
        /// What `hold` printed
        lease: String,
        #[command(flatten)]
        range: Range,
    },
    /// Give a slot back
    Cancel {
        /// What `hold` printed
        lease: String,
    },
}
