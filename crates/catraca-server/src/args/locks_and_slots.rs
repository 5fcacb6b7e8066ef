//! Arguments of `catraca locks` and `catraca slots`.

use clap::Subcommand;

use super::{PagingArgs, RemoteArgs};

const LOCKS: &str = "\
Examples:
  catraca locks list                              all active leases
  catraca locks list --tenant t1 --kind payment   of one tenant and kind
  catraca locks stats                             attempts by result
  catraca locks release 1769860800000000 --why 'its holder is gone'
  catraca locks clear t1 --why 'the tenant asked'

Exits 1 if there is no such lease.";

/// List and release the leases of locks.
#[derive(Debug, clap::Args)]
#[command(after_help = LOCKS)]
pub struct LocksArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: LocksVerb,
}

/// The verbs of `catraca locks`.
#[derive(Debug, Subcommand)]
pub enum LocksVerb {
    /// List active leases, oldest first
    List {
        /// Only of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Only of this kind
        #[arg(long, value_name = "NAME")]
        kind: Option<String>,
        /// Only names with this prefix
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// End a lease or a slot by its fence
    Release {
        /// The fence, as `list` shows it
        fence: u64,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: String,
        /// How long its names stay locked, in milliseconds; 5000 by default
        #[arg(long, value_name = "MS")]
        cool_down_ms: Option<u32>,
    },
    /// End all leases of a tenant; confirmed slots stay
    Clear {
        /// The tenant
        tenant: String,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Count attempts by tenant, kind and result
    Stats,
}

const SLOTS: &str = "\
Examples:
  catraca slots list shop-1/ana --from 2026-01-31T08:00:00Z --to 2026-01-31T18:00:00Z
  catraca slots hold shop-1/ana --from 2026-01-31T12:00:00Z --to 2026-01-31T12:30:00Z
  catraca slots confirm LEASE
  catraca slots move LEASE --from 2026-01-31T14:00:00Z --to 2026-01-31T14:30:00Z
  catraca slots cancel LEASE

LEASE is the id that `hold` prints. Exits 1 if the time is taken, or the lease has ended.";

/// Bookings in calendars: list free time, hold, confirm, move, cancel.
#[derive(Debug, clap::Args)]
#[command(after_help = SLOTS)]
pub struct SlotsArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The tenant of the calendars
    #[arg(long, global = true, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The verb
    #[command(subcommand)]
    pub verb: SlotsVerb,
}

/// A half-open range of time.
#[derive(Debug, clap::Args)]
pub struct TimeRangeArgs {
    /// Start of the range
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// End of the range, exclusive
    #[arg(long, value_name = "TIME")]
    pub to: String,
}

/// The verbs of `catraca slots`.
#[derive(Debug, Subcommand)]
pub enum SlotsVerb {
    /// List taken and free time
    List {
        /// The calendar
        calendar: String,
        #[command(flatten)]
        range: TimeRangeArgs,
        /// Skip free gaps shorter than this, in milliseconds
        #[arg(long, value_name = "MS")]
        min_length_ms: Option<u64>,
    },
    /// Hold a range of time in all calendars or none
    Hold {
        /// The calendars
        #[arg(required = true)]
        calendar: Vec<String>,
        #[command(flatten)]
        range: TimeRangeArgs,
        /// How long to hold it, in milliseconds
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// Confirm a held slot
    Confirm {
        /// The lease id that `hold` printed
        lease: String,
        /// Acquire it again if the hold has expired and the time is free
        #[arg(long)]
        reacquire_if_free: bool,
    },
    /// Move a slot to another time
    Move {
        /// The lease id that `hold` printed
        lease: String,
        #[command(flatten)]
        range: TimeRangeArgs,
    },
    /// Cancel a slot
    Cancel {
        /// The lease id that `hold` printed
        lease: String,
    },
}
