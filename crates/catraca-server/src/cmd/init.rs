//! `catraca init`: writes the files of a preset into a folder, and overwrites none.

mod env_file;

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::presets::{PRESETS, Preset};
use crate::args::InitArgs;
use crate::config;
use crate::exit::Exit;
use crate::render::StdoutPipe;

const CATALOG: &str = "catalog.toml";

/// Writes the files of a preset.
pub fn run(args: &InitArgs) -> Result<Exit> {
    let preset = find_preset(&args.preset)?;
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(preset.name));
    let imported = args.env.as_deref().map(|file| env_file::read(file, preset)).transpose()?;
    let files = contents(preset, imported.as_ref())?;
    refuse_existing(&folder, &files)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in &files {
        write_new(&folder.join(name), text)?;
    }
    let mut out = StdoutPipe::stdout();
    for (name, _) in &files {
        writeln!(out, "{}", folder.join(name).display())?;
    }
    if let Some(imported) = &imported {
        writeln!(out, "{}", imported.summary())?;
        writeln!(out, "the scenarios test the catalog with the preset's own values")?;
    }
    let folder = folder.display();
    writeln!(
        out,
        "\nnext: catraca test {folder}/*.scenario.toml\n      catraca serve -c {folder}/{CATALOG}"
    )?;
    Ok(Exit::Yes)
}

fn find_preset(name: &str) -> Result<&'static Preset> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.with_context(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        format!("there is no preset {name:?}; the presets are {}", names.join(", "))
    })
}

/// The files, with imported values as the defaults of the catalog's variables.
fn contents(
    preset: &Preset,
    imported: Option<&env_file::ImportedValues>,
) -> Result<Vec<(&'static str, Cow<'static, str>)>> {
    let mut files: Vec<_> =
        preset.files.iter().map(|(name, text)| (*name, Cow::Borrowed(*text))).collect();
    let Some(imported) = imported else { return Ok(files) };
    for (name, text) in files.iter_mut().filter(|(name, _)| *name == CATALOG) {
        let changed = imported.write_defaults(text);
        if let Err(diagnostics) = config::parse(&changed) {
            let errors: Vec<String> =
                diagnostics.errors().map(|error| error.message.clone()).collect();
            bail!("{name} would be invalid with these values: {}", errors.join("; "));
        }
        *text = Cow::Owned(changed);
    }
    Ok(files)
}

/// Refuses before the first file is written, so that no folder is left with half of a preset.
fn refuse_existing(folder: &Path, files: &[(&str, Cow<'_, str>)]) -> Result<()> {
    let names = files.iter().map(|(name, _)| *name);
    let existing: Vec<&str> = names.filter(|name| folder.join(name).exists()).collect();
    ensure!(
        existing.is_empty(),
        "{} has {} already, and no file is overwritten; name another folder",
        folder.display(),
        existing.join(", ")
    );
    Ok(())
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    match written.and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists already, and no file is overwritten", path.display())
        }
        other => other.with_context(|| format!("cannot write {}", path.display())),
    }
}
