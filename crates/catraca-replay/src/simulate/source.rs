//! Reads a history from a file or standard input, gzipped or not, in batches of lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, stdin};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;

use super::line_reader::{HistoryLine, LineReader};

/// Size of the read buffers, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;
/// A batch is complete when it has this many bytes.
const BATCH_BYTES: usize = 256 * 1024;
/// The first bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An open history.
pub struct Source {
    lines: LineReader<Box<dyn BufRead + Send>>,
    progress: Arc<dyn ReadProgress>,
    batch_bytes: usize,
}

/// A display of how much of a history was read.
pub trait ReadProgress: Send + Sync {
    /// More bytes of the file were read.
    fn on_bytes(&self, more: usize);
    /// So many lines were read.
    fn on_lines(&self, total: u64);
    /// The end was reached.
    fn on_end(&self);
}

/// Consecutive lines of a history, in one buffer.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    lines: Vec<LineRange>,
}

struct LineRange {
    number: u64,
    start: usize,
    /// The end; `None` for a line that was too long.
    end: Option<usize>,
}

/// Reports the bytes that are read.
struct ProgressReader<R> {
    inner: R,
    progress: Arc<dyn ReadProgress>,
}

impl Source {
    /// Opens a file, or standard input for `-`. `new_progress` gets the size of the file, if it is
    /// known.
    pub fn open(
        path: &Path,
        new_progress: impl FnOnce(Option<u64>) -> Arc<dyn ReadProgress>,
    ) -> Result<Self> {
        let error = || format!("cannot read {}", path.display());
        let (input, size): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
            (Box::new(stdin()), None)
        } else {
            let file = File::open(path).with_context(error)?;
            let size = file
                .metadata()
                .ok()
                .filter(|metadata| metadata.is_file())
                .map(|metadata| metadata.len());
            (Box::new(file), size)
        };
        Self::from_reader(input, new_progress(size)).with_context(error)
    }

    /// Reads a history from any input.
    pub fn from_reader(
        input: impl Read + Send + 'static,
        progress: Arc<dyn ReadProgress>,
    ) -> io::Result<Self> {
        let reader = ProgressReader { inner: input, progress: Arc::clone(&progress) };
        let lines = LineReader::new(decompress(reader)?);
        Ok(Self { lines, progress, batch_bytes: BATCH_BYTES })
    }

    /// Changes the size of batches, which otherwise suits long histories.
    #[must_use]
    pub fn with_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// The next lines; `None` at the end.
    pub(super) fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut batch = Batch::default();
        while batch.bytes.len() < self.batch_bytes {
            match self.lines.next().context("cannot read the events")? {
                Some((number, line)) => batch.push(number, &line),
                None => break,
            }
        }
        let Some(last) = batch.lines.last() else {
            self.progress.on_end();
            return Ok(None);
        };
        self.progress.on_lines(last.number);
        Ok(Some(batch))
    }
}

impl Batch {
    /// The lines with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (u64, HistoryLine<'_>)> {
        self.lines.iter().map(|range| {
            let text = range.end.and_then(|end| self.bytes.get(range.start..end));
            (range.number, text.map_or(HistoryLine::TooLong, HistoryLine::Text))
        })
    }

    fn push(&mut self, number: u64, line: &HistoryLine<'_>) {
        let start = self.bytes.len();
        let end = match line {
            HistoryLine::Text(text) => {
                self.bytes.extend_from_slice(text);
                Some(self.bytes.len())
            }
            HistoryLine::TooLong => None,
        };
        self.lines.push(LineRange { number, start, end });
    }
}

fn decompress(mut input: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    // Reads the first bytes to detect gzip, and chains them back before the rest.
    let mut first = Vec::with_capacity(GZIP.len());
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
    let is_gzip = first == GZIP;
    let whole: Chain<Cursor<Vec<u8>>, _> = Cursor::new(first).chain(input);
    let whole = BufReader::with_capacity(BUFFER_BYTES, whole);
    if is_gzip {
        let text = MultiGzDecoder::new(whole);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)));
    }
    Ok(Box::new(whole))
}

/// Displays nothing.
impl ReadProgress for () {
    fn on_bytes(&self, _: usize) {}
    fn on_lines(&self, _: u64) {}
    fn on_end(&self) {}
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.on_bytes(read);
        Ok(read)
    }
}
