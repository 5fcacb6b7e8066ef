//! One long response through a proxy: how fast it passes, and how much memory the proxy needs.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::floors::{STREAM_BYTES, STREAM_PATH};
use crate::proxies::{Proxy, Site, WAYS};
use crate::report::median;

/// A response may take so long between two parts.
const PATIENCE: Duration = Duration::from_secs(20);

/// One response through one proxy.
pub struct StreamRow {
    round: usize,
    name: &'static str,
    seconds: f64,
    cpu_seconds: f64,
    peak_kib: u64,
}

/// Reads the long response through a proxy.
pub fn measure(round: usize, proxy: Proxy, site: &Site) -> Result<StreamRow, String> {
    let cpu = || site.servers.iter().map(|server| server.cpu_seconds().1).sum::<f64>();
    let before = cpu();
    let begun = Instant::now();
    let bytes = read_all(site.port).map_err(|error| format!("{}: {error}", proxy.name()))?;
    let seconds = begun.elapsed().as_secs_f64();
    if bytes < STREAM_BYTES {
        return Err(format!("{}: the response broke off after {bytes} bytes", proxy.name()));
    }
    let peak_kib = site.servers.iter().map(|server| server.peak_kib()).max().unwrap_or(0);
    Ok(StreamRow { round, name: proxy.name(), seconds, cpu_seconds: cpu() - before, peak_kib })
}

/// The number of bytes of the response, with its head.
fn read_all(port: u16) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    stream.write_all(head.replace("{path}", STREAM_PATH).as_bytes())?;
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// The table, in Markdown.
pub fn table(rows: &[StreamRow]) -> String {
    let reference = WAYS[0].name();
    let seconds = |name: &str, round| {
        rows.iter().find(|row| row.name == name && row.round == round).map(|row| row.seconds)
    };
    let mut text = format!(
        "A response of 1 GiB; medians. The ratio of seconds is to {reference} in the same \
         round.\n\n\
         | Proxy | seconds | × | CPU seconds | peak MiB |\n|---|---:|---:|---:|---:|\n"
    );
    for name in WAYS.map(Proxy::name) {
        let own = || rows.iter().filter(|row| row.name == name);
        let ratios = own().filter_map(|row| Some(row.seconds / seconds(reference, row.round)?));
        let peak = own().map(|row| row.peak_kib).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "| {name} | {:.2} | {:.2} | {:.2} | {} |",
            median(own().map(|row| row.seconds)),
            median(ratios),
            median(own().map(|row| row.cpu_seconds)),
            peak >> 10
        );
    }
    text
}
