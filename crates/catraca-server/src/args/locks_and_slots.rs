//! Arguments of `catraca locks` and `catraca slots`.

use clap::Subcommand;

use super::{PagingArgs, RemoteArgs};

const LOCKS: &str = "\
Examples:
  catraca locks acquire payment order-7 --ttl-ms 30000
  catraca locks renew LEASE
  catraca locks release LEASE                     by its holder
  catraca locks list                              all active leases
  catraca locks list --tenant t1 --kind payment   of one tenant and kind
  catraca locks stats                             attempts by result
  catraca locks release 1769860800000000 --why 'its holder is gone'
  catraca locks clear t1 --why 'the tenant asked'

LEASE is the id that `acquire` prints. Exits 1 if a name is taken, or the lease has ended.";

/// Acquire, renew, list and release the leases of locks.
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
    /// Lock names, all or none
    Acquire {
        /// The kind, which has the settings: appointment, payment, resource, or another
        kind: String,
        /// The names
        #[arg(required = true)]
        key: Vec<String>,
        /// The tenant, which is part of the name
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// How long to hold it, in milliseconds; that of its kind by default
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
        /// How long to wait if a name is taken, in milliseconds
        #[arg(long, value_name = "MS")]
        wait_ms: Option<u64>,
        /// The holder's name, shown to others
        #[arg(long, value_name = "TEXT")]
        owner: Option<String>,
    },
    /// Extend a lease
    Renew {
        /// The lease id that `acquire` printed
        lease: String,
        /// How long from now, in milliseconds; that of its kind by default
        #[arg(long, value_name = "MS")]
        ttl_ms: Option<u64>,
    },
    /// List active leases, oldest first
    List {
        /// Only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
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
    /// End a lease by its id, or as an operator a lease or a slot by its fence
    Release {
        /// The lease id that `acquire` printed, or the fence that `list` shows
        #[arg(value_name = "LEASE|FENCE", value_parser = parse_lease_or_fence)]
        lease: LeaseOrFence,
        /// With a fence, its namespace; required as soon as there are several
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Written to the audit; required with a fence
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
        /// How long its names stay locked, in milliseconds; 5000 by default
        #[arg(long, value_name = "MS")]
        cool_down_ms: Option<u32>,
    },
    /// End all leases of a tenant; confirmed slots stay
    Clear {
        /// The tenant
        tenant: String,
        /// The namespace; required as soon as there are several
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Written to the audit
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        why: Option<String>,
    },
    /// Count attempts by namespace, tenant, kind and result
    Stats {
        /// Only of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
    },
}

/// A lease, named by its holder or by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOrFence {
    /// The secret id of the lease.
    Lease(String),
    /// Its fence, which lists show.
    Fence(u64),
}

/// A lease id has 32 hexadecimal digits, and a fence at most 20 decimal ones.
fn parse_lease_or_fence(text: &str) -> Result<LeaseOrFence, String> {
    if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(LeaseOrFence::Lease(text.to_owned()));
    }
    let wrong = |_| "write the lease id of 32 hexadecimal digits, or the fence of the list";
    text.parse().map(LeaseOrFence::Fence).map_err(|error| wrong(error).to_owned())
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
        /// The namespace; as soon as there are several, it is required unless your key fixes one
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
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
