//! Requirements that no test of ours can ever cover, each with its reason.
//!
//! Must not decide what is waived; the file does, and it should stay short.

use anyhow::{Context, Result, bail};

use super::ids::{Id, expand};

/// One requirement set aside.
pub(crate) struct Waiver {
    pub(crate) id: Id,
    pub(crate) reason: String,
}

/// Reads `[[waiver]] ids = [...] reason = "..."`; misspelt ids become problems.
pub(crate) fn parse(text: &str, problems: &mut Vec<String>) -> Result<Vec<Waiver>> {
    let file: toml::Table = text.parse().context("cannot read the waivers")?;
    if let Some(key) = file.keys().find(|key| *key != "waiver") {
        bail!("the waivers hold an unknown key `{key}`");
    }
    let mut waivers = Vec::new();
    for table in file.get("waiver").and_then(toml::Value::as_array).into_iter().flatten() {
        let reason = table.get("reason").and_then(toml::Value::as_str).unwrap_or_default();
        let ids =
            table.get("ids").and_then(toml::Value::as_array).context("a waiver has no ids")?;
        for id in ids {
            match expand(id.as_str().unwrap_or("(not a string)")) {
                Ok(ids) => waivers
                    .extend(ids.into_iter().map(|id| Waiver { id, reason: reason.to_owned() })),
                Err(error) => problems.push(format!("waivers: {error}")),
            }
        }
    }
    Ok(waivers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_gets_the_reason_of_its_table() {
        let text = "[[waiver]]\nids = [\"B-31\", \"X-01..X-02\"]\nreason = \"prose\"\n";
        let mut problems = Vec::new();
        let waivers = parse(text, &mut problems).unwrap();
        let ids: Vec<String> = waivers.iter().map(|waiver| waiver.id.to_string()).collect();
        assert_eq!(ids, ["B-31", "X-01", "X-02"]);
        assert!(waivers.iter().all(|waiver| waiver.reason == "prose"));
        assert!(problems.is_empty());
    }

    #[test]
    fn a_missing_reason_is_empty_and_a_missing_list_an_error() {
        let waivers = parse("[[waiver]]\nids = [\"B-31\"]", &mut Vec::new()).unwrap();
        assert_eq!(waivers[0].reason, "");
        assert!(parse("[[waiver]]\nreason = \"a\"", &mut Vec::new()).is_err());
        assert!(parse("[[waver]]\nids = []", &mut Vec::new()).is_err());
    }
}
