//! Refuses names of attributes that no caller sends: most likely they are misspelt, and what an
//! operator lists or searches under them would match no caller.

use super::{App, AppError};
use crate::records::AttributeValue;

impl App {
    /// Refuses an attribute that the catalog does not name, or that is a fact and not sent by
    /// callers: in one namespace, or in all.
    pub(super) fn check_caller_attribute(
        &self,
        code: &'static str,
        namespace: Option<&str>,
        attribute: &str,
    ) -> Result<(), AppError> {
        let rules = self.rules();
        let source = match namespace {
            Some(namespace) => rules.facts.in_namespace(namespace).source(attribute),
            None => rules.facts.of(None).and_then(|facts| facts.source(attribute)),
        };
        if let Some(source) = source {
            let detail = format!(
                "`{attribute}` comes from `{source}`, and callers do not send it: use the value \
                 of `{source}`"
            );
            return Err(AppError::invalid(code, detail));
        }
        let known = rules.catalog.check_attribute_name(attribute);
        known.map_err(|unknown| AppError::invalid(code, unknown.to_string()))
    }

    /// A value in every form that the records may have it, for a search. Refuses an attribute that
    /// callers do not send, unless the records know it from an earlier catalog.
    pub async fn values_to_find(
        &self,
        attribute: &str,
        value: &str,
    ) -> Result<Vec<AttributeValue>, AppError> {
        let forms = self.stored_values(attribute, value)?;
        let Err(unknown) = self.check_caller_attribute("bad-attribute", None, attribute) else {
            return Ok(forms);
        };
        self.await_queued_records().await?;
        let name = attribute.to_owned();
        match self.read_records(move |records| records.has_attribute(&name)).await? {
            true => Ok(forms),
            false => Err(unknown),
        }
    }
}
