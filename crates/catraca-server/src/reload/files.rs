//! The files of a catalog: the one that is named, and those that it includes.
//!
//! Must not keep their contents, only a hash of them all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use catraca::core::catalog::read::{Loaded, read};
use catraca::{Catalog, Includes, LoadError, environment};

use super::Trouble;
use crate::regular;

/// The files of a catalog, as they were named when it was read last.
#[derive(Default)]
pub struct Files {
    all: Vec<PathBuf>,
}

impl Files {
    /// Reads a catalog and notes its files, also of one that is wrong. The hash is of just what was
    /// read, so that whatever is written a moment later is another one.
    pub fn load(&mut self, path: &Path) -> (Result<Catalog, Trouble>, Hash) {
        let (mut all, mut hasher) = (vec![path.to_owned()], Hasher::new());
        let (shown, folder) = (path.display().to_string(), folder(path));
        let read = match contents(path, &mut hasher) {
            Err(error) => Err(LoadError::Unreadable { file: shown, error }),
            Ok(text) => {
                let mut includes = Includes::of(path);
                let mut include = |name: &str| {
                    let loaded = includes.load(name);
                    match &loaded {
                        Ok(Loaded::Again(_)) => return loaded,
                        Ok(Loaded::Text(text)) => hash(text.as_bytes(), &mut hasher),
                        Err(_) => drop(contents(&folder.join(name), &mut hasher)),
                    }
                    all.push(folder.join(name));
                    loaded
                };
                let read = read(&shown, &text, &mut include, &environment);
                read.map(|reading| reading.catalog).map_err(LoadError::Wrong)
            }
        };
        for file in read.iter().flat_map(certificate) {
            // Whether it can be used is decided elsewhere; here it may only differ.
            let _ = contents(&folder.join(file), &mut hasher);
            all.push(folder.join(file));
        }
        self.all = all;
        (read.map_err(|error| Trouble::of_load(path, &error)), hasher.finalize())
    }

    /// The contents of all files as they are now.
    pub fn hash(&self) -> Hash {
        let mut hasher = Hasher::new();
        for file in &self.all {
            // One that cannot be read counts as that.
            let _ = contents(file, &mut hasher);
        }
        hasher.finalize()
    }

    /// Their names.
    pub fn names(&self) -> &[PathBuf] {
        &self.all
    }
}

/// The files of the certificate that a catalog names.
fn certificate(catalog: &Catalog) -> impl Iterator<Item = &str> {
    let server = catalog.settings.sections.get("server");
    let named = move |field| server.and_then(|server| server.get(field)?.as_str());
    ["tls_cert", "tls_key"].into_iter().filter_map(named)
}

/// Where a file is; one that is named alone is here.
pub fn folder(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// A file's text. Only a regular one can be read twice, and a pipe would wait for a writer.
fn contents(file: &Path, hasher: &mut Hasher) -> io::Result<String> {
    match regular::ensure(file).and_then(|()| fs::read(file)) {
        Ok(bytes) => {
            hash(&bytes, hasher);
            let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
            String::from_utf8(bytes).map_err(not_text)
        }
        Err(error) => {
            hasher.update(&[0]);
            Err(error)
        }
    }
}

fn hash(bytes: &[u8], into: &mut Hasher) {
    into.update(&[1]).update(blake3::hash(bytes).as_bytes());
}
