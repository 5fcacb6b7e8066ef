//! Dependencies between our crates point one way.
//!
//! The table below is the architecture in a few lines. Must not look at other people's crates.

use anyhow::{Context, Result};

use super::Finding;

/// Each crate and the ones of ours it may use, in any section of its manifest.
const DIRECTION: [(&str, &[&str]); 7] = [
    ("catraca-core", &[]),
    ("catraca", &["catraca-core"]),
    ("catraca-testkit", &["catraca", "catraca-core"]),
    ("catraca-replay", &["catraca", "catraca-core", TEST_KIT]),
    ("catraca-server", &["catraca", "catraca-core", "catraca-replay", TEST_KIT]),
    ("catraca-conformance", &["catraca", "catraca-core", TEST_KIT]),
    ("xtask", &["catraca-conformance"]),
];
/// May be used by tests alone, so that no program that we ship contains it.
const TEST_KIT: &str = "catraca-testkit";
const DEV_SECTION: &str = "dev-dependencies";
const SECTIONS: [&str; 3] = ["dependencies", DEV_SECTION, "build-dependencies"];

pub(crate) fn check(file: &str, text: &str) -> Result<Vec<Finding>> {
    let manifest: toml::Table = text.parse().with_context(|| format!("cannot read {file}"))?;
    let name = manifest.get("package").and_then(|p| p.get("name")).and_then(toml::Value::as_str);
    let ours = ["conformance/", "crates/", "xtask/"].iter().any(|folder| file.starts_with(folder));
    let (Some(name), true) = (name, ours) else { return Ok(Vec::new()) };
    let finding = |message| Finding::new("dependency", file, 1, format!("{file}: {message}"));
    let Some((_, allowed)) = DIRECTION.iter().find(|(known, _)| *known == name) else {
        return Ok(vec![finding(format!("{name} has no line in the table of directions"))]);
    };
    let mut findings = Vec::new();
    for (section, used) in dependencies(&manifest) {
        let is_ours = DIRECTION.iter().any(|(known, _)| *known == used);
        if is_ours && !allowed.contains(&used.as_str()) {
            findings.push(finding(format!("{name} must not depend on {used}")));
        } else if used == TEST_KIT && section != DEV_SECTION {
            findings.push(finding(format!("{name} may use {used} only in [{DEV_SECTION}]")));
        }
    }
    Ok(findings)
}

/// Real names of everything the manifest depends on, also for single targets, with the sections.
fn dependencies(manifest: &toml::Table) -> Vec<(&'static str, String)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flat_map(|targets| targets.values());
    let owners = tables.filter_map(toml::Value::as_table).chain([manifest]);
    let mut found = Vec::new();
    for owner in owners {
        for section in SECTIONS {
            let entries = owner.get(section).and_then(toml::Value::as_table);
            found.extend(entries.into_iter().flatten().map(|entry| (section, real_name(entry))));
        }
    }
    found
}

/// A dependency may be renamed; its `package` is what counts.
fn real_name((key, value): (&String, &toml::Value)) -> String {
    value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(name: &str, rest: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n{rest}");
        let findings = check(&format!("crates/{name}/Cargo.toml"), &text).unwrap();
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn the_allowed_direction_is_fine() {
        let rest = "[dependencies]\ncatraca-core.workspace = true\nserde = \"1\"\n";
        assert!(messages("catraca", rest).is_empty());
    }

    #[test]
    fn the_other_direction_is_not_in_any_section() {
        for section in ["dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"] {
            let found = messages("catraca-core", &format!("[{section}]\ncatraca = \"1\"\n"));
            assert!(found[0].contains("catraca-core must not depend on catraca"), "{section}");
        }
    }

    #[test]
    fn the_test_kit_is_for_tests_alone() {
        for (section, findings) in
            [("dependencies", 1), ("build-dependencies", 1), ("dev-dependencies", 0)]
        {
            for name in ["catraca-server", "catraca-replay"] {
                let rest = format!("[{section}]\ncatraca-testkit.workspace = true\n");
                assert_eq!(messages(name, &rest).len(), findings, "{name} {section}");
            }
        }
    }

    #[test]
    fn a_renamed_dependency_is_still_seen() {
        let rest = "[dependencies]\nkit = { package = \"catraca-testkit\", version = \"1\" }\n";
        assert_eq!(messages("catraca", rest).len(), 1);
    }

    #[test]
    fn a_new_crate_must_take_its_place_in_the_table() {
        assert!(messages("catraca-extra", "")[0].contains("no line in the table"));
        let bench = check("bench/core/Cargo.toml", "[package]\nname = \"bench\"").unwrap();
        assert!(bench.is_empty());
    }
}
