//! The arguments of a settle.

use catraca_core::outcome::Outcome;
use catraca_core::subject::Subject;

/// The arguments of a settle.
///
/// ```
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Check, Engine, Outcome, Settle};
///
/// let catalog = Catalog::parse(r#"
///     [policy.lookup]
///     by     = ["payer"]
///     bucket = { size = 100, refill = "2 per 1m" }
///     cost   = { "404" = 20, default = 1 }
/// "#)?;
/// let engine = Engine::new(catalog);
/// let ticket = engine.check(&Check::new("lookup", [("payer", "a")]))?.ticket.unwrap_or_default();
/// let outcome = Outcome::status(404);
/// let settled = engine.settle(&Settle::ticket(&ticket, &outcome))?;
/// assert_eq!(settled.rows[0].charged, 20);
///
/// // A second settle returns the first result.
/// let again = engine.settle(&Settle::ticket(&ticket, &outcome))?;
/// assert_eq!(again.rows[0].charged, 20);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settle<'a> {
    /// The namespace of the check.
    pub namespace: &'a str,
    /// The check to settle.
    pub check: CheckRef<'a>,
    /// The outcome of the request.
    pub outcome: &'a Outcome,
}

/// How a caller names an earlier check.
///
/// ```
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Check, CheckRef, Engine, Outcome, Settle, Subject};
///
/// let text = "[policy.a]\n by = ['ip']\n window = '9 per 1m'\n cost = { '404' = 2, default = 1 }";
/// let engine = Engine::new(Catalog::parse(text)?);
/// let caller = Subject::from([("ip", "198.51.100.7")]);
/// let check = Check::new("a", caller.clone());
/// let ticket = engine.check(&check)?.ticket.unwrap_or_default();
/// engine.check(&check.reference("order-7"))?;
/// let outcome = Outcome::status(404);
/// let check = CheckRef::Ticket(&ticket);
/// let settle = Settle { namespace: "default", check, outcome: &outcome };
/// assert_eq!(engine.settle(&settle)?.rows[0].charged, 2);
/// let check = CheckRef::Reference("order-7", caller);
/// let settle = Settle { namespace: "default", check, outcome: &outcome };
/// assert_eq!(engine.settle(&settle)?.rows[0].charged, 2);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum CheckRef<'a> {
    /// By the ticket of its decision.
    Ticket(&'a str),
    /// By its reference; the subject must be that of the check.
    Reference(&'a str, Subject<'a>),
}

impl<'a> Settle<'a> {
    /// Settles by ticket, in the default namespace.
    pub fn ticket(ticket: &'a str, outcome: &'a Outcome) -> Self {
        let namespace = crate::engine::default_namespace();
        Self { namespace, check: CheckRef::Ticket(ticket), outcome }
    }

    /// Settles by the reference and the subject of the check, in the default namespace.
    ///
    /// ```
    /// # #[cfg(feature = "settle")] {
    /// use catraca::{Catalog, Check, Engine, Outcome, Settle, Subject};
    ///
    /// let catalog = Catalog::parse(r#"
    ///     [policy.lookup]
    ///     by     = ["payer"]
    ///     bucket = { size = 100, refill = "2 per 1m" }
    ///     cost   = { "404" = 20, default = 1 }
    /// "#)?;
    /// let engine = Engine::new(catalog);
    /// let payer = Subject::from([("payer", "a")]);
    /// engine.check(&Check::new("lookup", payer.clone()).reference("E1"))?;
    /// let outcome = Outcome::status(404);
    /// let settled = engine.settle(&Settle::reference("E1", payer, &outcome))?;
    /// assert_eq!(settled.rows[0].charged, 20);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reference(
        reference: &'a str,
        subject: impl Into<Subject<'a>>,
        outcome: &'a Outcome,
    ) -> Self {
        let namespace = crate::engine::default_namespace();
        Self { namespace, check: CheckRef::Reference(reference, subject.into()), outcome }
    }

    /// Uses another namespace: that of the check.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }
}
