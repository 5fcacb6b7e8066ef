//! Where a history comes from: a file or standard input, gzipped or not, read ahead in batches.
//!
//! Reading has a thread of its own, so that deciding never waits for a disk. Must not look into
//! lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, stdin};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;

use super::lines::{Line, Lines};
use super::progress::Progress;

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;
/// A batch is handed on when it has this many bytes.
const BATCH_BYTES: usize = 256 * 1024;
/// Batches read ahead.
pub const AHEAD: usize = 4;
/// How a gzipped file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An opened history.
pub struct Source {
    lines: Lines<Box<dyn BufRead + Send>>,
    progress: Progress,
}

/// Some lines of a history.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    lines: Vec<Place>,
}

struct Place {
    number: u64,
    start: usize,
    /// The end, or nothing where a line was too long to be kept.
    end: Option<usize>,
}

/// A reader whose bytes are counted as they pass.
struct Watched<R> {
    inner: R,
    progress: Progress,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let (input, size): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
            (Box::new(stdin()), None)
        } else {
            let file = File::open(path).with_context(cannot)?;
            let size = file.metadata().ok().filter(|found| found.is_file()).map(|f| f.len());
            (Box::new(file), size)
        };
        let progress = Progress::new(size);
        let watched = Watched { inner: input, progress: progress.clone() };
        let lines = Lines::new(unzipped(watched).with_context(cannot)?);
        Ok(Self { lines, progress })
    }

    /// Sends every batch to every receiver, until the end or until nobody listens.
    pub fn pump(mut self, to: &[SyncSender<Arc<Batch>>]) -> Result<()> {
        while let Some(batch) = self.batch().context("cannot read the events")? {
            self.progress.lines(batch.lines.last().map_or(0, |place| place.number));
            let batch = Arc::new(batch);
            if to.iter().any(|receiver| receiver.send(Arc::clone(&batch)).is_err()) {
                break;
            }
        }
        self.progress.finish();
        Ok(())
    }

    fn batch(&mut self) -> io::Result<Option<Batch>> {
        let mut batch = Batch::default();
        while batch.bytes.len() < BATCH_BYTES {
            match self.lines.next()? {
                Some((number, line)) => batch.push(number, &line),
                None => break,
            }
        }
        Ok((!batch.lines.is_empty()).then_some(batch))
    }
}

impl Batch {
    /// The lines with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (u64, Line<'_>)> {
        self.lines.iter().map(|place| {
            let text = place.end.and_then(|end| self.bytes.get(place.start..end));
            (place.number, text.map_or(Line::TooLong, Line::Text))
        })
    }

    fn push(&mut self, number: u64, line: &Line<'_>) {
        let start = self.bytes.len();
        let end = match line {
            Line::Text(text) => {
                self.bytes.extend_from_slice(text);
                Some(self.bytes.len())
            }
            Line::TooLong => None,
        };
        self.lines.push(Place { number, start, end });
    }
}

fn unzipped(mut input: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut first = Vec::with_capacity(GZIP.len());
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
    let is_gzip = first == GZIP;
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(first).chain(input);
    let whole = BufReader::with_capacity(CHUNK, whole);
    if is_gzip {
        let text = MultiGzDecoder::new(whole);
        return Ok(Box::new(BufReader::with_capacity(CHUNK, text)));
    }
    Ok(Box::new(whole))
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.bytes(read);
        Ok(read)
    }
}
