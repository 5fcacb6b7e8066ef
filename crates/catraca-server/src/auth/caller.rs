//! The sender of a request, as its key describes it.

use catraca::Subject;
use catraca::core::request::DEFAULT_NAMESPACE;

use super::AuthError;
use super::role::Role;

/// The name of every caller while there are no keys.
const LOCAL_NAME: &str = "local";

/// The sender of a request, as its key describes it.
#[derive(Debug)]
pub struct Caller {
    /// The key's name; the audit records it as the operator.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) namespace: Option<String>,
    /// Attributes that the key fixes; a request cannot send other values.
    pub(super) fix: Vec<(String, String)>,
}

impl Caller {
    /// The caller of every request while there are no keys.
    pub(super) fn local() -> Self {
        let name = LOCAL_NAME.to_owned();
        Self { name, role: Role::Admin, namespace: None, fix: Vec::new() }
    }

    /// The name of the caller's key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The caller's role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The namespace of the caller's counters and locks.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The namespace to which the caller's key is bound, if it is.
    pub fn bound_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The namespaces that the caller may see: its own if its key is bound to one, else the stated
    /// one, or all of them.
    pub fn visible_namespace<'n>(
        &'n self,
        stated: Option<&'n str>,
    ) -> Result<Option<&'n str>, AuthError> {
        match (self.bound_namespace(), stated) {
            (Some(own), Some(stated)) if own != stated => {
                Err(AuthError::OtherNamespace(own.to_owned()))
            }
            (Some(own), _) => Ok(Some(own)),
            (None, stated) => Ok(stated),
        }
    }

    /// Refuses a caller whose role does not include `least`.
    pub fn require_role(&self, least: Role) -> Result<(), AuthError> {
        if self.role.includes(least) { Ok(()) } else { Err(AuthError::RoleTooLow(least)) }
    }

    /// Refuses a caller whose key is bound to a namespace; for calls that cover all of them.
    pub fn require_all_namespaces(&self) -> Result<(), AuthError> {
        if self.namespace.is_some() { Err(AuthError::NamespaceBound) } else { Ok(()) }
    }

    /// The tenant that the key fixes, or else the stated one; a stated tenant that differs from the
    /// fixed one is refused.
    pub fn allowed_tenant(&self, stated: Option<&str>) -> Result<Option<String>, AuthError> {
        let fixed = self.fix.iter().find(|(name, _)| name == "tenant");
        match (fixed, stated) {
            (Some((name, fixed)), Some(stated)) if fixed != stated => {
                Err(AuthError::FixedAttribute(name.clone()))
            }
            (Some((_, fixed)), _) => Ok(Some(fixed.clone())),
            (None, stated) => Ok(stated.map(str::to_owned)),
        }
    }

    /// The subject with the attributes that the key fixes; another value for one is refused.
    pub fn with_fixed_attributes<'a>(
        &'a self,
        mut subject: Subject<'a>,
    ) -> Result<Subject<'a>, AuthError> {
        for (name, value) in &self.fix {
            let stated = subject.pairs().find(|(stated, _)| stated == name);
            match stated.map(|(_, stated)| stated) {
                None => subject = subject.with(name, value),
                Some(stated) if stated == *value => {}
                Some(_) => return Err(AuthError::FixedAttribute(name.clone())),
            }
        }
        Ok(subject)
    }
}
