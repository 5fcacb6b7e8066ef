//! The variables of conditions, converted to CEL values.
//!
//! Each variable is converted on its first use and then shared by all conditions of a settle. Texts
//! are borrowed from the outcome.

use std::collections::HashMap;
use std::sync::OnceLock;

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use serde_json::{Number, Value as Json};

use crate::outcome::Outcome;

type Pairs = [(String, String)];

/// The variables of the conditions of one settle.
pub struct Inputs<'a> {
    outcome: &'a Outcome,
    attributes: &'a Pairs,
    body_bytes_max: usize,
    /// The size of the body in bytes; `None` if it exceeds `body_bytes_max`.
    body_bytes: OnceLock<Option<usize>>,
    body_values: OnceLock<usize>,
    status: OnceLock<Box<dyn Val + 'a>>,
    body: OnceLock<Box<dyn Val + 'a>>,
    body_truncated: OnceLock<Box<dyn Val + 'a>>,
    body_invalid: OnceLock<Box<dyn Val + 'a>>,
    headers: OnceLock<Box<dyn Val + 'a>>,
    subject: OnceLock<Box<dyn Val + 'a>>,
}

impl<'a> Inputs<'a> {
    pub fn new(outcome: &'a Outcome, attributes: &'a Pairs, body_bytes_max: usize) -> Self {
        Self {
            outcome,
            attributes,
            body_bytes_max,
            body_bytes: OnceLock::new(),
            body_values: OnceLock::new(),
            status: OnceLock::new(),
            body: OnceLock::new(),
            body_truncated: OnceLock::new(),
            body_invalid: OnceLock::new(),
            headers: OnceLock::new(),
            subject: OnceLock::new(),
        }
    }

    /// The size of the body in bytes; `None` if it is too large for conditions to see it.
    pub fn body_bytes(&self) -> Option<usize> {
        *self.body_bytes.get_or_init(|| self.outcome.body_bytes_within(self.body_bytes_max))
    }

    /// Whether the body is not readable as JSON.
    pub fn body_invalid(&self) -> bool {
        self.outcome.body_invalid
    }

    /// The total size of the names and values of all headers, in bytes.
    pub fn header_bytes(&self) -> usize {
        text_bytes(&self.outcome.headers)
    }

    /// The total size of the names and values of all attributes, in bytes.
    pub fn subject_bytes(&self) -> usize {
        text_bytes(self.attributes)
    }

    /// The number of JSON values in the body that conditions see, the body itself included.
    pub fn body_values(&self) -> usize {
        *self.body_values.get_or_init(|| self.visible_body().map_or(1, values))
    }

    /// The number of headers.
    pub fn header_count(&self) -> usize {
        self.outcome.headers.len()
    }

    #[cfg(test)]
    pub(super) fn has_converted_body(&self) -> bool {
        self.body.get().is_some()
    }

    /// The body, unless it is too large; conditions see null then.
    fn visible_body(&self) -> Option<&'a Json> {
        self.body_bytes().map(|_| &self.outcome.body)
    }
}

impl VariableResolver for Inputs<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let value = match variable {
            "status" => self.status.get_or_init(|| status_value(self.outcome.status)),
            "body" => self
                .body
                .get_or_init(|| self.visible_body().map_or_else(null, |body| value_of(body))),
            "body_truncated" => {
                let truncated = || into_val(CelBool::from(self.body_bytes().is_none()));
                self.body_truncated.get_or_init(truncated)
            }
            "body_invalid" => {
                let invalid = || into_val(CelBool::from(self.outcome.body_invalid));
                self.body_invalid.get_or_init(invalid)
            }
            "headers" => self.headers.get_or_init(|| text_map(&self.outcome.headers)),
            "subject" => self.subject.get_or_init(|| text_map(self.attributes)),
            _ => return None,
        };
        Some(CowVal::Borrowed(&**value))
    }
}

fn text_bytes(pairs: &Pairs) -> usize {
    pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// The number of JSON values in a value, itself included.
fn values(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Json::Object(fields) => 1 + fields.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

fn into_val<'a>(value: impl Val + 'a) -> Box<dyn Val + 'a> {
    Box::new(value)
}

fn null<'a>() -> Box<dyn Val + 'a> {
    into_val(CelNull)
}

fn status_value<'a>(status: Option<u16>) -> Box<dyn Val + 'a> {
    status.map_or_else(null, |status| into_val(CelInt::from(i64::from(status))))
}

/// Whole numbers become integers, so that `body.reject_id == 5` means the number five and never the
/// text.
fn value_of(json: &Json) -> Box<dyn Val + '_> {
    match json {
        Json::Null => null(),
        Json::Bool(flag) => into_val(CelBool::from(*flag)),
        Json::Number(number) => number_of(number),
        Json::String(text) => into_val(CelString::from(text.as_str())),
        Json::Array(items) => {
            let items: Vec<Box<dyn Val + '_>> = items.iter().map(value_of).collect();
            into_val(CelList::from(items))
        }
        Json::Object(fields) => {
            map(fields.iter().map(|(name, value)| (name.as_str(), value_of(value))))
        }
    }
}

fn number_of<'a>(number: &Number) -> Box<dyn Val + 'a> {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(int), _, _) => into_val(CelInt::from(int)),
        (None, Some(unsigned), _) => into_val(CelUInt::from(unsigned)),
        (None, None, Some(float)) => into_val(CelDouble::from(float)),
        (None, None, None) => null(),
    }
}

fn text_map(pairs: &Pairs) -> Box<dyn Val + '_> {
    map(pairs
        .iter()
        .map(|(name, value)| (name.as_str(), into_val(CelString::from(value.as_str())))))
}

fn map<'a>(entries: impl Iterator<Item = (&'a str, Box<dyn Val + 'a>)>) -> Box<dyn Val + 'a> {
    let entries = entries.map(|(name, value)| (CelMapKey::from(name), value));
    into_val(CelMap::from(entries.collect::<HashMap<_, _>>()))
}
