//! The costs of a stream do not depend on the parts in which it arrives.

use std::sync::Arc;

use catraca::core::json_path::JsonPath;
use catraca::core::outcome::OutcomeBody;
use catraca::http_outcome::BodyCopy;
use http::{HeaderMap, HeaderValue, header};

/// The input is an event stream.
pub fn check(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for part_bytes in [1, 3, 16] {
        assert_eq!(read(data, part_bytes), whole);
    }
}

fn read(data: &[u8], part_bytes: usize) -> OutcomeBody {
    let event_stream = HeaderValue::from_static("text/event-stream");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, event_stream)]);
    let paths = ["usage.total_tokens", "message.usage.input_tokens", "usage.output_tokens", "a"];
    let paths: Arc<[JsonPath]> = paths.into_iter().filter_map(JsonPath::parse).collect();
    let mut copy = BodyCopy::new(&headers, 256, &paths);
    data.chunks(part_bytes).for_each(|part| copy.push(part));
    copy.on_end();
    copy.into_body()
}
