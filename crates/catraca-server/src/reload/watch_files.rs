//! When to look at the files: on a notification of the system, and every two seconds in any case.
//!
//! Folders are watched instead of files, because a rename over a file or a swapped symlink creates
//! another file. Notifications only trigger a look: they may be missing or false.

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
use crate::observe::background_tasks::BackgroundTask;

/// Polling interval, for file systems without notifications, such as some network disks.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time between the two looks that must see the same content.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Pause after a look.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks at the files; never returns.
pub async fn watch(reloader: Arc<Reloader>) {
    let changed = Arc::new(Notify::new());
    let mut folders = FolderWatcher::new(&changed);
    loop {
        let poller = Arc::clone(&reloader);
        // A disk may be slow, and async workers must not block on it.
        let look = move || {
            let background = &poller.targets.observer.background;
            background.run(BackgroundTask::FileWatch, || Ok((poller.poll_files(), poller.files())))
        };
        // A panic is caught and reported, so an error means that the runtime stops.
        let Ok(looked) = spawn_blocking(look).await else { return };
        if let Some((soon, files)) = looked {
            folders.watch(&files);
            if soon {
                tokio::time::sleep(SETTLE_TIME).await;
                continue;
            }
        }
        // The notification normally comes first. Databases beside the catalog change all the time,
        // so the pause bounds how often their folder causes a look.
        let _ = tokio::time::timeout(POLL_INTERVAL, changed.notified()).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Watches the folders of the catalog's files.
struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    watched: Vec<PathBuf>,
    /// The files of the catalog.
    files: Arc<Mutex<Vec<PathBuf>>>,
}

impl FolderWatcher {
    fn new(changed: &Arc<Notify>) -> Self {
        let changed = Arc::clone(changed);
        let files = Arc::<Mutex<Vec<PathBuf>>>::default();
        let catalog_files = Arc::clone(&files);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| may_change_catalog(&event, &catalog_files.lock())) {
                changed.notify_one();
            }
        });
        if let Err(error) = &watcher {
            let why = error.to_string();
            warn!(
                why,
                "the system does not report file changes; the catalog is polled every two seconds"
            );
        }
        Self { watcher: watcher.ok(), watched: Vec::new(), files }
    }

    /// Watches the folders of these files. Errors are ignored: polling covers such folders.
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
        self.watched = folders;
        *self.files.lock() = files.to_vec();
    }
}

/// Whether an event may change the catalog: any created, removed or renamed name (a symlink may be
/// swapped), but contents only of the catalog's own files.
fn may_change_catalog(event: &Event, files: &[PathBuf]) -> bool {
    // Compared by file name only.
    let is_catalog_file =
        |path: &PathBuf| files.iter().any(|file| file.file_name() == path.file_name());
    match event.kind {
        // Our own reads.
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => {
            event.paths.iter().any(is_catalog_file)
        }
        _ => true,
    }
}
