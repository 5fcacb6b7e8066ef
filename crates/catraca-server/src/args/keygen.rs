//! The arguments of `catraca keygen`.

use clap::ValueEnum;

const KEYGEN: &str = "\
Examples:
  catraca keygen --role check                              for a program that checks
  catraca keygen --role check --namespace shop             for one namespace only
  catraca keygen --role support --name rui                 for a help desk
  catraca keygen --role admin --name ana                   for an operator

read may read state, check may also check and settle, support may also see why a caller is denied
and release its blocks with a reason, admin may do everything. The key is printed
once; the catalog stores its hash in [[auth.key]]. As soon as there is one key, every call except
/healthz, /readyz, /openapi.json and /docs needs one, and the server may listen on any address.";

/// Make a random API key, and the [[auth.key]] lines to paste into the catalog.
#[derive(Debug, clap::Args)]
#[command(after_help = KEYGEN)]
pub struct KeygenArgs {
    /// What the key may do
    #[arg(long, value_name = "read|check|support|admin", hide_possible_values = true)]
    pub role: RoleName,
    /// The only namespace of the key; by default, all namespaces
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Its name in the audit; by default, the role and a part of the hash
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// The roles of `--role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// May read state
    Read,
    /// May also check and settle
    Check,
    /// May also see why a caller is denied, and release its blocks
    Support,
    /// May do everything
    Admin,
}

impl RoleName {
    /// The role as a catalog spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Check => "check",
            Self::Support => "support",
            Self::Admin => "admin",
        }
    }
}
