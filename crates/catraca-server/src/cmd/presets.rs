//! The presets, which are part of the program, and `catraca presets`, which lists them.
//!
//! A test compares the files here with those of the folders below `presets/`.

use std::io::Write;

use anyhow::Result;

use crate::exit::Exit;
use crate::render::StdoutPipe;

/// A ready catalog with everything beside it.
pub struct Preset {
    /// The name, also that of its folder below `presets/`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// Names and contents of its files; the first is the catalog.
    pub files: &'static [(&'static str, &'static str)],
}

/// The files of a preset: its catalog, its README, and others.
macro_rules! files {
    ($folder:literal $(, $file:literal)*) => {
        &[
            files!(@file $folder, "catalog.toml"),
            files!(@file $folder, "README.md"),
            $(files!(@file $folder, $file),)*
        ]
    };
    (@file $folder:literal, $file:literal) => {
        ($file, include_str!(concat!("../../../../presets/", $folder, "/", $file)))
    };
}

/// All presets but the demo, which `catraca` serves without a catalog.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "soft-ban",
        about: "bans that depend on the response of a payment API",
        files: files!("soft-ban", "soft-ban.scenario.toml"),
    },
    Preset {
        name: "dict",
        about: "the 31 token buckets of DICT, for a Pix participant",
        files: files!(
            "dict",
            "dict.scenario.toml",
            "margins.scenario.toml",
            "policies.scenario.toml"
        ),
    },
    Preset {
        name: "window-block",
        about: "an exact window with a block, by address or by known token",
        files: files!("window-block", "window-block.scenario.toml"),
    },
    Preset {
        name: "checkout",
        about: "every action of a checkout in one catalog, with a default",
        files: files!("checkout", "checkout.scenario.toml", "policies.scenario.toml"),
    },
    Preset {
        name: "booking",
        about: "bursts, clients and tenants of a booking site, locks and slots",
        files: files!("booking", "booking.scenario.toml", "production.env"),
    },
    Preset {
        name: "llm-budget",
        about: "budgets of tokens and money for language models",
        files: files!("llm-budget", "llm-budget.scenario.toml"),
    },
];

/// Lists the presets.
pub fn run() -> Result<Exit> {
    let mut out = StdoutPipe::stdout();
    for Preset { name, about, .. } in PRESETS {
        writeln!(out, "{name:<13} {about}")?;
    }
    Ok(Exit::Yes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    fn folder_entries(folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect()
    }

    /// A file that a preset got must be written by `init` too.
    #[test]
    fn every_file_of_every_preset_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets");
        let mut names = folder_entries(&root);
        names.remove("README.md");
        names.remove("demo");
        let embedded: BTreeSet<String> =
            PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
        assert_eq!(names, embedded);
        for preset in PRESETS {
            let own: BTreeSet<String> =
                preset.files.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(folder_entries(&root.join(preset.name)), own, "{}", preset.name);
        }
    }
}
