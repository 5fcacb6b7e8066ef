//! Finds mistakes in the configuration of a client: at its start, and in what it has sent so far.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use catraca_core::request::Check;
use catraca_core::subject::Subject;
use http::header;
use parking_lot::Mutex;
use serde::Deserialize;

use super::transport::{HttpAnswer, HttpCall};
use super::{Client, ClientError};

/// Clocks that differ more than this are reported; `Date` itself has whole seconds.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(30);
/// This many checks with one address are reported.
const SAME_ADDRESS_CHECKS: u64 = 100;
/// The attribute of addresses in all presets and examples.
const ADDRESS: &str = "ip";

/// A mistake in the configuration of a client or its server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientWarning {
    /// The catalog has no gate or policy of this name, so its checks fail or use the default.
    UnknownGate {
        /// The gate.
        gate: String,
    },
    /// The role of the key does not permit checks.
    WrongRole {
        /// The role.
        role: String,
    },
    /// The key may administrate the server, which a program that checks does not need.
    AdminKey,
    /// The clocks of this process and of the server differ, so instants such as `blocked_until`
    /// mislead.
    ClockDifference {
        /// By how much.
        difference: Duration,
    },
    /// All checks so far had the same address, which is then that of a proxy: all callers share
    /// one counter.
    SameAddress {
        /// The number of checks.
        checks: u64,
    },
    /// The server gave no answer, so nothing more could be compared.
    Unavailable {
        /// Why there is no answer.
        error: ClientError,
    },
    /// The server does not accept the key, so every check of this client fails.
    KeyRefused {
        /// The server's answer.
        error: ClientError,
    },
}

#[derive(Deserialize)]
struct WhoamiText {
    role: String,
}

#[derive(Deserialize)]
struct PolicyNames {
    policies: Vec<PolicyName>,
}

#[derive(Deserialize)]
struct PolicyName {
    policy: String,
}

#[derive(Deserialize)]
struct GateNames {
    gates: Vec<GateName>,
}

#[derive(Deserialize)]
struct GateName {
    gate: String,
}

impl Client {
    /// Compares the configuration of this client with the server: the key's role, these gates, the
    /// clock. It also reports if all checks so far had the same address, which is a warning in the
    /// log of its own after 100 checks. Charges nothing.
    ///
    /// It never fails: a server that cannot be reached and a key that it does not accept are
    /// warnings too, so that a program starts while its server is unavailable and its fail mode
    /// decides.
    ///
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = catraca::Client::builder("http://127.0.0.1:7878").build()?;
    /// for warning in client.verify(&["login"]).await {
    ///     eprintln!("{}: {warning}", warning.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn verify(&self, gates: &[&str]) -> Vec<ClientWarning> {
        let mut warnings = Vec::new();
        if let Err(error) = self.compare_with_server(gates, &mut warnings).await {
            warnings.push(ClientWarning::from_error(error));
        }
        warnings.extend(self.parts.addresses.warning());
        warnings
    }

    async fn compare_with_server(
        &self,
        gates: &[&str],
        warnings: &mut Vec<ClientWarning>,
    ) -> Result<(), ClientError> {
        let answer = self.call(&HttpCall::get("/v1/whoami"), Duration::ZERO).await?;
        let caller: WhoamiText = answer.read(&self.parts.transport)?;
        warnings.extend(self.role_warning(caller.role));
        let difference = clock_difference(&answer).filter(|it| *it > CLOCK_DIFFERENCE_MAX);
        warnings.extend(difference.map(|difference| ClientWarning::ClockDifference { difference }));
        if gates.is_empty() {
            return Ok(());
        }
        let declared = self.declared_names().await?;
        for gate in gates {
            let is_known = match &declared {
                Some(names) => names.contains(*gate),
                None => self.accepts_gate(gate).await?,
            };
            if !is_known {
                warnings.push(ClientWarning::UnknownGate { gate: (*gate).to_owned() });
            }
        }
        Ok(())
    }

    fn role_warning(&self, role: String) -> Option<ClientWarning> {
        match role.as_str() {
            "check" => None,
            // Without a key, the server has none: everybody administrates it.
            "admin" if !self.parts.transport.has_key() => None,
            "admin" => Some(ClientWarning::AdminKey),
            _ => Some(ClientWarning::WrongRole { role }),
        }
    }

    /// The policies and gates of the catalog; `None` if the key may see only its own namespace.
    async fn declared_names(&self) -> Result<Option<HashSet<String>>, ClientError> {
        let transport = &self.parts.transport;
        let policies = self.call(&HttpCall::get("/v1/policies"), Duration::ZERO).await?;
        let policies: PolicyNames = match policies.read(transport) {
            Err(ClientError::Unauthorized { .. }) => return Ok(None),
            read => read?,
        };
        let gates = self.call(&HttpCall::get("/v1/config"), Duration::ZERO).await?;
        let gates: GateNames = gates.read(transport)?;
        let policies = policies.policies.into_iter().map(|entry| entry.policy);
        Ok(Some(policies.chain(gates.gates.into_iter().map(|entry| entry.gate)).collect()))
    }

    /// Whether a peek of the gate is not refused as unknown. It charges nothing, but it cannot see
    /// that only the default policy decides if that policy needs attributes.
    async fn accepts_gate(&self, gate: &str) -> Result<bool, ClientError> {
        match self.peek(&Check::new(gate, Subject::new())).await {
            Ok(decision) => Ok(!decision.unlisted),
            Err(error) if error.code() == Some("unknown-gate") => Ok(false),
            // A known gate refuses a subject without attributes.
            Err(ClientError::Refused { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl ClientWarning {
    fn from_error(error: ClientError) -> Self {
        match error {
            ClientError::Unauthorized { .. } => Self::KeyRefused { error },
            _ => Self::Unavailable { error },
        }
    }

    /// A stable name for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownGate { .. } => "unknown-gate",
            Self::WrongRole { .. } => "wrong-role",
            Self::AdminKey => "admin-key",
            Self::ClockDifference { .. } => "clock-difference",
            Self::SameAddress { .. } => "same-address",
            Self::Unavailable { .. } => "unavailable",
            Self::KeyRefused { .. } => "key-refused",
        }
    }
}

impl fmt::Display for ClientWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGate { gate } => write!(
                f,
                "the server's catalog does not name the gate `{gate}`: add it, or correct the name"
            ),
            Self::WrongRole { role } => write!(
                f,
                "the key has the role `{role}`, which permits no checks: use a key of role `check`"
            ),
            Self::AdminKey => f.write_str(
                "the key has the role `admin`, which a program that checks does not need: use a \
                 key of role `check`",
            ),
            Self::ClockDifference { difference } => write!(
                f,
                "the clocks of this process and of the server differ by {} s: synchronize them",
                difference.as_secs()
            ),
            Self::SameAddress { checks } => write!(
                f,
                "all {checks} checks had the same `{ADDRESS}`, probably that of a proxy: read the \
                 client's address from the proxy's header"
            ),
            Self::Unavailable { error } => {
                write!(f, "{error}; the fail mode decides checks until the server answers")
            }
            Self::KeyRefused { error } => write!(
                f,
                "{error}: every check fails; make a key with `catraca keygen --role check`"
            ),
        }
    }
}

fn clock_difference(answer: &HttpAnswer) -> Option<Duration> {
    let date = answer.headers.get(header::DATE)?.to_str().ok()?;
    let theirs = httpdate::parse_http_date(date).ok()?;
    let ours = SystemTime::now();
    ours.duration_since(theirs).or_else(|_| theirs.duration_since(ours)).ok()
}

/// Whether all checks have the same address.
#[derive(Default)]
pub(super) struct AddressWatch {
    first: Mutex<Option<Box<str>>>,
    checks: AtomicU64,
    has_others: AtomicBool,
}

impl AddressWatch {
    /// Notes the address of a check.
    pub fn note(&self, subject: &Subject<'_>) {
        if self.has_others.load(Ordering::Relaxed) {
            return;
        }
        let Some(address) = subject.get(ADDRESS) else { return };
        let mut first = self.first.lock();
        let first = first.get_or_insert_with(|| (*address).into());
        if **first != *address {
            self.has_others.store(true, Ordering::Relaxed);
        }
        let checks = self.checks.fetch_add(1, Ordering::Relaxed) + 1;
        if checks == SAME_ADDRESS_CHECKS
            && let Some(warning) = self.warning()
        {
            tracing::warn!(warning = warning.name(), "{warning}");
        }
    }

    fn warning(&self) -> Option<ClientWarning> {
        let checks = self.checks.load(Ordering::Relaxed);
        let is_same = checks >= SAME_ADDRESS_CHECKS && !self.has_others.load(Ordering::Relaxed);
        is_same.then_some(ClientWarning::SameAddress { checks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::log_buffer::LogBuffer;

    #[test]
    fn many_checks_with_one_address_are_reported_until_another_comes() {
        let watch = AddressWatch::default();
        let note = |address: &str| watch.note(&Subject::from([("ip", address)]));
        watch.note(&Subject::from([("user", "ana")]));
        for _ in 1..SAME_ADDRESS_CHECKS {
            note("10.0.0.1");
        }
        assert_eq!(watch.warning(), None);
        note("10.0.0.1");
        assert_eq!(watch.warning().map(|warning| warning.name()), Some("same-address"));
        note("198.51.100.7");
        assert_eq!(watch.warning(), None);
    }

    #[test]
    fn one_address_in_all_checks_is_logged_once_without_a_call() {
        let log = LogBuffer::default();
        let _subscriber = log.subscribe();
        let watch = AddressWatch::default();
        for _ in 0..3 * SAME_ADDRESS_CHECKS {
            watch.note(&Subject::from([("ip", "10.0.0.1")]));
        }
        let text = log.text();
        assert_eq!(text.matches("same-address").count(), 1, "{text}");
        assert!(text.contains("all 100 checks had the same `ip`"), "{text}");
    }
}
