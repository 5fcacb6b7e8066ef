//! When to look at the files: as soon as the system tells of a change in their folders, and now and
//! then in any case.
//!
//! Folders are watched, not files: a file that is renamed over, or reached by a symlink that is
//! swapped, is another file. Must not trust what the system tells: it only says when to look.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::Reloader;
use super::files::folder;

/// How often the files are looked at where the system tells nothing, as on some network disks.
const LOOK: Duration = Duration::from_secs(2);
/// How long a change must stand before it is believed.
const SETTLE: Duration = Duration::from_millis(100);

/// How long nobody looks after a look.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks at the files for ever.
pub async fn watch(reloader: Arc<Reloader>) {
    let told = Arc::new(Notify::new());
    let mut folders = Folders::new(&told);
    loop {
        let looking = Arc::clone(&reloader);
        // A disk may take its time, and decisions must not wait for it.
        let looked = spawn_blocking(move || (looking.look(), looking.files())).await;
        let Ok((soon, files)) = looked else { return };
        folders.watch(&files);
        if soon {
            tokio::time::sleep(SETTLE).await;
            continue;
        }
        // Being told is the usual way; the clock is for what nobody tells. What is kept beside the
        // catalog changes all the time, so that a look is worth a pause.
        let _ = tokio::time::timeout(LOOK, told.notified()).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The folders that the system tells of.
struct Folders {
    watcher: Option<RecommendedWatcher>,
    watched: Vec<PathBuf>,
    /// The files whose contents matter.
    files: Arc<Mutex<Vec<PathBuf>>>,
}

impl Folders {
    fn new(told: &Arc<Notify>) -> Self {
        let (told, files) = (Arc::clone(told), Arc::<Mutex<Vec<PathBuf>>>::default());
        let known = Arc::clone(&files);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| matters(&event, &known.lock())) {
                told.notify_one();
            }
        });
        if let Err(error) = &watcher {
            let why = error.to_string();
            warn!(why, "changes of the catalog are seen by looking every two seconds");
        }
        Self { watcher: watcher.ok(), watched: Vec::new(), files }
    }

    /// Watches these; a folder that cannot be watched is looked at all the same.
    fn watch(&mut self, files: &[PathBuf]) {
        let Some(watcher) = &mut self.watcher else { return };
        if *self.files.lock() == files {
            return;
        }
        let mut folders: Vec<PathBuf> = files.iter().map(|file| folder(file)).collect();
        folders.sort();
        folders.dedup();
        for folder in self.watched.iter().filter(|folder| !folders.contains(folder)) {
            let _ = watcher.unwatch(folder);
        }
        for folder in folders.iter().filter(|folder| !self.watched.contains(folder)) {
            let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
        }
        (self.watched, *self.files.lock()) = (folders, files.to_vec());
    }
}

/// Whether an event may be a change: names that come and go always, contents only of our files.
fn matters(event: &Event, files: &[PathBuf]) -> bool {
    let ours = |path: &PathBuf| files.iter().any(|file| file.file_name() == path.file_name());
    match event.kind {
        // Our own looking is no change.
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => {
            event.paths.iter().any(ours)
        }
        _ => true,
    }
}
