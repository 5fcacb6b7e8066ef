//! Configs of a source as a catalog, and the policies of a catalog as configs.
//!
//! Both have whole minutes, so no number is converted.

use anyhow::{Result, bail};
use catraca::Catalog;
use catraca::core::policy::Policy;
use catraca::core::time::Span;

use super::configs::SourceConfig;
use crate::config;

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// How a catalog is written.
pub struct CatalogStyle<'a> {
    /// The file of the source, for the heading.
    pub source: &'a str,
    /// The attribute by which callers are counted.
    pub by: &'a str,
    /// Windows that start with their first attempt and end as a whole.
    pub anchored: bool,
}

/// The difference between the source and the catalog, for its heading.
const SLIDING: &str = "\
# Every window slides: never more than N attempts in any span of that length. The columns of the
# source, first_attempt_at and attempts, are of a window that starts with the first attempt and ends
# as a whole; around its end it admits up to 2N attempts in a short time. So a caller may be denied
# here that the source let pass. `catraca import configs --anchored` writes windows of that kind.
";
const ANCHORED: &str = "\
# Every window starts with its first attempt and ends as a whole, as the columns first_attempt_at
# and attempts of the source imply. Around its end a caller may pass 2N attempts in a short time;
# `catraca import configs` without --anchored writes windows that slide, and never admit more.
";

/// A catalog with one policy for each config; the one called `DEFAULT` decides for all other
/// actions.
pub fn write(configs: &[SourceConfig], style: &CatalogStyle<'_>) -> Result<String> {
    let CatalogStyle { source, by, anchored } = style;
    let mut text = format!("# Made from {source} by `catraca import configs`.\n#\n");
    text += if *anchored { ANCHORED } else { SLIDING };
    if let Some(default) = configs.iter().find(|config| config.name == "DEFAULT") {
        text += &format!("\ndefault = {}\n", toml_text(&default.action));
    }
    let kind = if *anchored { "fixed " } else { "window" };
    for config in configs {
        let SourceConfig { name, action, attempts, window_minutes, block_minutes, about, .. } =
            config;
        let about = about.as_deref().map(|about| format!(": {about}")).unwrap_or_default();
        text += &format!("\n[policy.{}]  # {name}{about}\n", toml_key(action));
        text += &format!("by         = [{}]\n", toml_text(by));
        text += &format!("{kind}     = \"{attempts} per {window_minutes}m\"\n");
        if *block_minutes > 0 {
            text += &format!("block      = \"{block_minutes}m\"\n");
        }
        text += "on_missing = \"error\"\non_failure = \"open\"\n";
    }
    if let Err(diagnostics) = config::parse(&text) {
        let errors: Vec<String> = diagnostics.errors().map(|error| error.message.clone()).collect();
        bail!("a catalog of these configs would be invalid: {}", errors.join("; "));
    }
    Ok(text)
}

/// A key of TOML.
fn toml_key(name: &str) -> String {
    let is_bare = |one: char| one.is_ascii_alphanumeric() || matches!(one, '_' | '-');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => toml_text(name),
    }
}

/// A text of TOML.
fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A policy as the fields that configurations of limits in TypeScript have.
pub struct PolicyConfig<'c> {
    /// The name of the constant, unique in the catalog.
    pub constant: String,
    pub policy: &'c Policy,
    /// Attempts, window and block in minutes; `None` if it is not one limit in whole minutes.
    pub numbers: Option<[i64; 3]>,
}

/// The policies of a catalog in its order.
pub fn policy_configs(catalog: &Catalog) -> Vec<PolicyConfig<'_>> {
    let mut configs: Vec<PolicyConfig<'_>> = Vec::new();
    for policy in &catalog.policies {
        let mut constant = constant_name(&policy.name);
        let is_taken = |name: &str| configs.iter().any(|other| other.constant == name);
        while constant == "RATE_LIMIT_CONFIGS" || is_taken(&constant) {
            constant.push('_');
        }
        configs.push(PolicyConfig { constant, policy, numbers: config_numbers(policy) });
    }
    configs
}

/// The policies of a catalog as the constants and the map that `catraca import configs` reads.
pub fn write_configs(catalog: &Catalog) -> String {
    let mut text = "// Made by `catraca export configs`: change the catalog instead.\n".to_owned();
    let mut names = String::new();
    for PolicyConfig { constant, policy, numbers } in policy_configs(catalog) {
        match numbers {
            Some([attempts, window, block]) => {
                text += &format!(
                    "\nexport const {constant} = {{\n  action: {:?},\n  \
                     maxAttempts: {attempts},\n  windowMinutes: {window},\n  \
                     blockDurationMinutes: {block},\n}};\n",
                    &*policy.name
                );
                names += &format!("  {constant},\n");
            }
            None => {
                text += &format!(
                    "\n// {constant} is left out: it is not one limit in whole minutes.\n"
                );
            }
        }
    }
    text + &format!("\nexport const RATE_LIMIT_CONFIGS = {{\n{names}}} as const;\n")
}

fn constant_name(policy: &str) -> String {
    let upper =
        |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_uppercase() } else { '_' };
    let name: String = policy.chars().map(upper).collect();
    if name.starts_with(|one: char| one.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Attempts, window and block of a policy with one window and no tiers, in minutes.
fn config_numbers(policy: &Policy) -> Option<[i64; 3]> {
    let terms = policy.base.as_ref().filter(|_| policy.tiers.is_empty())?;
    let window = terms.limit.longest_window().filter(|_| terms.limit.several_windows() == 0)?;
    let block = match terms.block {
        Some(penalty) if penalty.escalates() => return None,
        Some(penalty) => penalty.first,
        None => Span::ZERO,
    };
    Some([terms.limit.capacity()?, whole_minutes(window)?, whole_minutes(block)?])
}

fn whole_minutes(span: Span) -> Option<i64> {
    let micros = span.micros();
    (micros % MICROS_PER_MINUTE == 0).then_some(micros / MICROS_PER_MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_limit_in_whole_minutes_has_numbers() {
        let escalating = "block = { first = '1m', factor = 2, max = '4m', forget = '1d' }";
        let tier = "tier = [{ when = { plan = 'a' }, window = '9 per 1m' }]";
        for (limit, expected) in [
            ("window = '10 per 15m'", Some([10_i64, 15, 0])),
            ("fixed = '10 per 1h'\nblock = '30m'", Some([10, 60, 30])),
            ("window = '10 per 90s'", None),
            ("window = '10 per 15m'\nblock = '90s'", None),
            ("window = ['10 per 1h', '100 per 24h']", None),
            ("bucket = { size = 10, refill = '10 per 15m' }", None),
            ("inflight = 10", None),
            (&format!("window = '10 per 15m'\n{escalating}"), None),
            (&format!("window = '10 per 15m'\n{tier}"), None),
        ] {
            let catalog = Catalog::parse(&format!("[policy.p]\nby = ['ip']\n{limit}\n")).unwrap();
            let numbers = policy_configs(&catalog)[0].numbers;
            assert_eq!(numbers, expected, "{limit}");
        }
    }
}
