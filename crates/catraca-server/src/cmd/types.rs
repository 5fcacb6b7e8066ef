//! `catraca types`: prints the gates of a catalog, with the attributes that each of them reads, as
//! types of a programming language.

mod gate_attributes;
mod go;
mod typescript;

use std::io::Write;

use anyhow::{Context, Result, ensure};

use crate::args::{TypesArgs, TypesLanguage};
use crate::exit::Exit;
use crate::render::StdoutPipe;

/// Prints the types.
pub fn run(args: &TypesArgs) -> Result<Exit> {
    let path = args.catalog.as_deref().or(args.file.as_deref());
    let catalog = super::catalog(path.context("name the catalog with -c FILE")?)?;
    let gates = gate_attributes::of_catalog(&catalog);
    let is_typescript = args.lang == TypesLanguage::Ts;
    ensure!(
        is_typescript || !args.configs,
        "--configs is for --lang ts: other languages have none"
    );
    let text = match args.lang {
        TypesLanguage::Ts if args.configs => typescript::render_with_configs(&catalog, &gates),
        TypesLanguage::Ts => typescript::render(&gates),
        TypesLanguage::Go => go::render(&gates),
    };
    write!(StdoutPipe::stdout(), "{text}")?;
    Ok(Exit::Yes)
}
