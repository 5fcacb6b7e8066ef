//! A gate that is looked up once and checked often: by reference to its engine, or with it.
//!
//! A misspelt gate or attribute is an error when the handle is made, and the number of values of a
//! check is checked by the compiler. A handle stays valid when the catalog is reloaded: it then
//! looks the gate up again at every check.

use std::ops::Deref;
use std::sync::Arc;

use catraca_core::catalog::{Catalog, gate_attributes};
use catraca_core::decision::Decision;
use catraca_core::located::names::nearest;
use catraca_core::policy::{KeySpec, Name, OnMissing, Policy, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::request::{Check, DEFAULT_NAMESPACE};
use catraca_core::subject::{AttributeValue, Subject};

use super::check::CheckExchange;
use super::gate_error::GateError;
use super::{CheckMode, Engine};
use crate::error::Error;
use crate::memory::Memory;
use crate::rule_set::{GatePolicies, RuleSet};
use crate::store::Store;

/// A gate of an engine, with the names of the attributes that its checks send.
///
/// ```
/// use catraca::{Catalog, Engine};
///
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 15m'")?;
/// let engine = Engine::new(catalog);
/// let login = engine.gate("login")?;
///
/// assert!(login.check(["198.51.100.7"])?.allowed);
/// assert!(!login.check(["198.51.100.7"])?.allowed);
/// assert!(login.check([std::net::Ipv4Addr::new(203, 0, 113, 9)])?.allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct GateHandle<E, const N: usize> {
    engine: E,
    gate: Name,
    attributes: [Name; N],
    namespace: Name,
    /// The policies of the gate in this catalog.
    resolved: (Arc<Catalog>, Vec<PolicyId>),
}

/// A gate that owns its engine, for the state of an application: it is `'static`, and its clones
/// share the engine.
///
/// ```
/// use std::sync::Arc;
///
/// use catraca::{Catalog, Engine, OwnedGate};
///
/// struct AppState {
///     login: OwnedGate,
///     transfer: OwnedGate<2>,
/// }
///
/// let catalog = Catalog::parse(r#"
///     [policy.login]
///     by     = ["ip"]
///     window = "1 per 15m"
///     [policy.transfer]
///     by     = ["from", "to"]
///     window = "5 per 1h"
/// "#)?;
/// let engine = Arc::new(Engine::new(catalog));
/// let login = engine.owned_gate("login")?;
/// let transfer = engine.owned_gate_by("transfer", ["from", "to"])?;
/// let state = AppState { login, transfer };
///
/// let login = state.login.clone();
/// let other = std::thread::spawn(move || login.check(["198.51.100.7"]).map(|it| it.allowed));
/// assert!(matches!(other.join(), Ok(Ok(true))));
/// assert!(!state.login.check(["198.51.100.7"])?.allowed);
/// assert!(state.transfer.check(["ana", "rui"])?.allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type OwnedGate<const N: usize = 1, S = Memory> = GateHandle<Arc<Engine<S>>, N>;

impl<S> Engine<S> {
    /// A gate to check often that reads one attribute, whose name is that of the catalog.
    ///
    /// ```
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 15m'")?;
    /// let engine = Engine::new(catalog);
    /// assert!(engine.gate("login")?.check(["198.51.100.7"])?.allowed);
    /// let error = engine.gate("logn").expect_err("it is misspelt");
    /// assert!(error.to_string().ends_with("did you mean `login`?"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The values of several attributes could be exchanged when the catalog is reordered, so a
    /// gate that reads several is an error here: name them with [`Self::gate_by`].
    pub fn gate(&self, gate: &str) -> Result<GateHandle<&Self, 1>, GateError> {
        let attribute = self.only_attribute(gate)?;
        self.gate_by(gate, [&attribute])
    }

    /// A gate to check often, with the names of the attributes that the checks will send. The
    /// values are passed in the same order.
    ///
    /// ```
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.login]\nby = ['ip', 'user']\nwindow = '1 per 15m'")?;
    /// let engine = Engine::new(catalog);
    /// let login = engine.gate_by("login", ["user", "ip"])?;
    /// assert!(login.check(["ana", "198.51.100.7"])?.allowed);
    /// assert!(login.check(["rui", "198.51.100.7"])?.allowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gate_by<const N: usize>(
        &self,
        gate: &str,
        attributes: [&str; N],
    ) -> Result<GateHandle<&Self, N>, GateError> {
        GateHandle::new(self, gate, attributes)
    }

    /// Like [`Self::gate`], and the handle owns the engine.
    pub fn owned_gate(self: &Arc<Self>, gate: &str) -> Result<OwnedGate<1, S>, GateError> {
        let attribute = self.only_attribute(gate)?;
        self.owned_gate_by(gate, [&attribute])
    }

    /// Like [`Self::gate_by`], and the handle owns the engine.
    pub fn owned_gate_by<const N: usize>(
        self: &Arc<Self>,
        gate: &str,
        attributes: [&str; N],
    ) -> Result<OwnedGate<N, S>, GateError> {
        GateHandle::new(Arc::clone(self), gate, attributes)
    }

    /// The attribute of a gate that reads exactly one.
    fn only_attribute(&self, gate: &str) -> Result<String, GateError> {
        let mut attributes = self.gate_attributes(gate)?;
        match attributes.pop() {
            Some(attribute) if attributes.is_empty() => Ok(attribute),
            last => {
                attributes.extend(last);
                Err(GateError::AttributesNotNamed { gate: gate.to_owned(), attributes })
            }
        }
    }

    /// The attributes that a gate reads from its callers, in the order in which its policies first
    /// read them.
    pub fn gate_attributes(&self, gate: &str) -> Result<Vec<String>, GateError> {
        let rules = self.rules.load();
        let policies = declared_policies(&rules, gate)?;
        let facts = rules.facts.in_namespace(DEFAULT_NAMESPACE);
        let attributes = gate_attributes(&rules.catalog, facts, policies);
        Ok(attributes.iter().map(|attribute| attribute.name.to_string()).collect())
    }
}

impl<E: Deref<Target = Engine<S>>, S, const N: usize> GateHandle<E, N> {
    fn new(engine: E, gate: &str, attributes: [&str; N]) -> Result<Self, GateError> {
        let rules = engine.rules.load();
        let policies = declared_policies(&rules, gate)?;
        check_attributes(&rules, gate, policies, &attributes)?;
        let resolved = (Arc::clone(&rules.catalog), policies.to_vec());
        drop(rules);
        Ok(Self {
            engine,
            gate: gate.into(),
            attributes: attributes.map(Name::from),
            namespace: DEFAULT_NAMESPACE.into(),
            resolved,
        })
    }
}

impl<E, const N: usize> GateHandle<E, N> {
    /// Uses another namespace, which separates the counters of tenants.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The names of the attributes, in the order of their values.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|name| &**name)
    }

    /// A check of this gate, to add a cost or a reference to, for [`Self::decide`]. An empty value
    /// counts as absent.
    pub fn request<'a, V: Into<AttributeValue<'a>>>(&'a self, values: [V; N]) -> Check<'a> {
        let pairs = self.attributes.iter().zip(values);
        let subject = pairs.map(|(name, value)| (&**name, value)).collect::<Subject<'a>>();
        Check::new(&self.gate, subject).namespace(&self.namespace)
    }
}

impl<E: Deref<Target = Engine<S>>, S: Store, const N: usize> GateHandle<E, N> {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    pub fn check<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
    ) -> Result<Decision, Error> {
        self.run(&self.request(values), CheckMode::Check)
    }

    /// Like [`Self::check`], with a cost of this many units.
    pub fn check_cost<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
        cost: i64,
    ) -> Result<Decision, Error> {
        self.run(&self.request(values).cost(cost), CheckMode::Check)
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    pub fn peek<'a, V: Into<AttributeValue<'a>>>(
        &'a self,
        values: [V; N],
    ) -> Result<Decision, Error> {
        self.run(&self.request(values), CheckMode::Peek)
    }

    /// Decides a check that [`Self::request`] made.
    ///
    /// ```
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.export]\n by = ['account']\n window = '100 per 1h'")?;
    /// let engine = Engine::new(catalog);
    /// let export = engine.gate("export")?;
    /// let decision = export.decide(&export.request(["a"]).cost(40).without_lists())?;
    /// assert_eq!(decision.remaining, Some(60));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.run(check, CheckMode::Check)
    }

    #[inline]
    fn run(&self, check: &Check<'_>, mode: CheckMode) -> Result<Decision, Error> {
        let rules = self.engine.rules.load();
        let (catalog, policies) = &self.resolved;
        let is_resolved = Arc::ptr_eq(catalog, &rules.catalog) && check.gate == &*self.gate;
        let mut exchange = CheckExchange::new(&self.engine, &rules, check, mode);
        if is_resolved {
            check.validate()?;
            let gate = GatePolicies { policies, unlisted: None, is_default: false };
            exchange.plan_gate(&gate)?;
        } else {
            exchange.plan()?;
        }
        self.engine.run(&mut exchange)
    }
}

impl<E, const N: usize> std::fmt::Debug for GateHandle<E, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let attributes: Vec<&str> = self.attributes().collect();
        f.debug_struct("GateHandle")
            .field("gate", &self.gate)
            .field("attributes", &attributes)
            .finish_non_exhaustive()
    }
}

/// The policies of a gate that the catalog declares.
fn declared_policies<'r>(rules: &'r RuleSet, gate: &str) -> Result<&'r [PolicyId], GateError> {
    let found = rules.catalog.gates.get(gate).map(|gate| gate.policies.as_slice());
    found.ok_or_else(|| GateError::UnknownGate {
        gate: gate.to_owned(),
        nearest: rules.catalog.nearest_gate(gate).map(str::to_owned),
    })
}

/// Refuses names that the catalog does not know, names of facts, and attributes without which
/// every check would be refused.
fn check_attributes(
    rules: &RuleSet,
    gate: &str,
    policies: &[PolicyId],
    attributes: &[&str],
) -> Result<(), GateError> {
    // A handle of another namespace looks its facts up at each check.
    let facts = rules.facts.in_namespace(DEFAULT_NAMESPACE);
    let read = gate_attributes(&rules.catalog, facts, policies);
    let read: Vec<&str> = read.iter().map(|attribute| &*attribute.name).collect();
    // Lists may name any attribute that is declared.
    let declared = rules.catalog.attributes.keys().map(|name| &**name);
    let known: Vec<&str> = read.iter().copied().chain(declared).collect();
    for attribute in attributes {
        if let Some(source) = facts.source(attribute) {
            let name = (*attribute).to_owned();
            let source_attribute = source.to_string();
            return Err(Refusal::ReservedAttribute { name, source_attribute }.into());
        }
        if !known.contains(attribute) {
            return Err(GateError::UnknownAttribute {
                gate: gate.to_owned(),
                attribute: (*attribute).to_owned(),
                nearest: nearest(attribute, &known).map(str::to_owned),
                known: read.iter().map(ToString::to_string).collect(),
            });
        }
    }
    for id in policies {
        require_key(rules.catalog.policy(*id), attributes)?;
    }
    Ok(())
}

/// Refuses attributes that never make a key of a policy which insists on one.
fn require_key(policy: &Policy, attributes: &[&str]) -> Result<(), Refusal> {
    if policy.otherwise.is_some() || policy.on_missing != OnMissing::Error {
        return Ok(());
    }
    let is_sent = |name: &Name| attributes.contains(&&**name);
    let missing = match &policy.key_spec {
        KeySpec::By(parts) => parts.iter().find(|part| !part.iter().any(is_sent)),
        KeySpec::Each(names) => (!names.iter().any(is_sent)).then_some(names),
    };
    match missing {
        Some(names) => Err(Refusal::MissingAttribute {
            policy: policy.name.to_string(),
            attribute: names.join("` or `"),
        }),
        None => Ok(()),
    }
}
