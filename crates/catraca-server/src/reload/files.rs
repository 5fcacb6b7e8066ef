//! The files of a catalog: the main file, the included ones, the certificate, the keys of tokens.
//! Only a hash of their contents stays in memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use catraca::core::catalog::read::{IncludedFile, read_with};
use catraca::{Includes, LoadError, environment};

use super::ReloadError;
use crate::config::{LoadedCatalog, ProcessReader};
use crate::regular_file;

/// The files of a catalog, as of its last load.
#[derive(Default)]
pub struct CatalogFiles {
    paths: Vec<PathBuf>,
}

impl CatalogFiles {
    /// Loads a catalog and remembers its files, also of an invalid one. The hash covers exactly the
    /// bytes that were parsed, so that a write a moment later is seen as another change.
    pub fn load(&mut self, path: &Path) -> (Result<LoadedCatalog, ReloadError>, Hash) {
        let mut paths = vec![path.to_owned()];
        let mut hasher = Hasher::new();
        let shown = path.display().to_string();
        let folder = folder(path);
        let loaded = match read_text(path, &mut hasher) {
            Err(error) => Err(LoadError::Unreadable { file: shown, error }),
            Ok(text) => {
                let mut includes = Includes::of(path);
                let mut include = |name: &str| {
                    let loaded = includes.load(name);
                    match &loaded {
                        Ok(IncludedFile::AlreadyRead(_)) => return loaded,
                        Ok(IncludedFile::Text(text)) => hash(text.as_bytes(), &mut hasher),
                        // Hashed too, so that its repair is seen as a change.
                        Err(_) => drop(read_text(&folder.join(name), &mut hasher)),
                    }
                    paths.push(folder.join(name));
                    loaded
                };
                let mut reader = ProcessReader::default();
                let read = read_with(&shown, &text, &mut include, &environment, &mut reader);
                let loaded = read.and_then(|parsed| LoadedCatalog::new(parsed, reader));
                loaded.map_err(LoadError::Invalid)
            }
        };
        for file in loaded.iter().flat_map(other_files) {
            // Only the hash matters here; `TlsFiles` and `JwtSection` read the files.
            let _ = read_text(&folder.join(file), &mut hasher);
            paths.push(folder.join(file));
        }
        self.paths = paths;
        (loaded.map_err(|error| ReloadError::of_load(path, &error)), hasher.finalize())
    }

    /// The hash of all files as they are now.
    pub fn hash(&self) -> Hash {
        let mut hasher = Hasher::new();
        for file in &self.paths {
            // An unreadable file has a hash of its own.
            let _ = read_text(file, &mut hasher);
        }
        hasher.finalize()
    }

    /// The paths of the files.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// The files with certificates and keys that a catalog names.
fn other_files(loaded: &LoadedCatalog) -> impl Iterator<Item = &str> {
    let server = &loaded.process.server;
    let proxy = &loaded.process.proxy;
    let files =
        [&server.tls_cert, &server.tls_key, &proxy.tls_cert, &proxy.tls_key, &proxy.client_ca];
    let files = files.into_iter().filter_map(|file| file.as_deref());
    files.chain(loaded.process.jwt.files())
}

/// The folder of a file; `.` for a bare name.
pub fn folder(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The text of a file, added to the hash. Only regular files: a pipe can be read once, and opening
/// it would wait for a writer.
fn read_text(file: &Path, hasher: &mut Hasher) -> io::Result<String> {
    match regular_file::ensure(file).and_then(|()| fs::read(file)) {
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

/// Adds one file. The leading byte separates readable files from unreadable ones, and hashing each
/// file first keeps their boundaries.
fn hash(bytes: &[u8], into: &mut Hasher) {
    into.update(&[1]).update(blake3::hash(bytes).as_bytes());
}
