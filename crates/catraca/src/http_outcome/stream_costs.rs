//! The costs in an event stream. Language models send what a response has used in one of its last
//! events, or a part of it in the first.

use std::sync::Arc;

use catraca_core::json_path::JsonPath;
use catraca_core::outcome::{BodySize, OutcomeBody};
use serde_json::Value;

use super::event_scanner::EventScanner;

/// The fields with costs in the events that have arrived. Keeps one number for each field.
#[derive(Debug)]
pub(super) struct StreamCosts {
    scanner: EventScanner,
    fields: CostFields,
    is_complete: bool,
}

impl StreamCosts {
    /// Reads these fields. An event of more than `bytes_max` bytes is skipped.
    pub fn new(paths: Arc<[JsonPath]>, bytes_max: usize) -> Self {
        let numbers = vec![None; paths.len()];
        let fields = CostFields { paths, numbers, bytes_max };
        Self { scanner: EventScanner::new(bytes_max), fields, is_complete: false }
    }

    /// Adds the next part of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes, |data| self.fields.read(data));
    }

    /// The stream has reached its end.
    pub fn on_end(&mut self) {
        self.is_complete = true;
    }

    /// Whether more events can change the costs.
    pub fn awaits_more(&self) -> bool {
        !self.is_complete
    }

    /// An object with the fields that were found. A stream that broke off has used more than its
    /// events say, so it is as unreadable as one without these fields.
    pub fn into_body(mut self) -> OutcomeBody {
        let mut value = Value::Null;
        if self.is_complete {
            self.scanner.finish(|data| self.fields.read(data));
            self.fields.write_to(&mut value);
        }
        let is_invalid = value.is_null();
        OutcomeBody { value, size: BodySize::Unmeasured, is_invalid }
    }
}

#[derive(Debug)]
struct CostFields {
    paths: Arc<[JsonPath]>,
    /// The number of the last event that has the field, for each path.
    numbers: Vec<Option<u64>>,
    bytes_max: usize,
}

impl CostFields {
    fn read(&mut self, data: &[u8]) {
        // Most events have none of the fields, and are not parsed.
        if !self.paths.iter().any(|path| contains(data, path.last_step().as_bytes())) {
            return;
        }
        let event = OutcomeBody::from_json(data, self.bytes_max).value;
        for (path, number) in self.paths.iter().zip(&mut self.numbers) {
            let found = path.find(&event).and_then(Value::as_u64);
            *number = found.or(*number);
        }
    }

    fn write_to(&self, value: &mut Value) {
        for (path, number) in self.paths.iter().zip(&self.numbers) {
            if let Some(number) = number {
                path.set(value, Value::from(*number));
            }
        }
    }
}

fn contains(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len().max(1)).any(|part| part == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The body of a stream that reads these fields.
    fn body(paths: &[&str], stream: &str, is_complete: bool) -> Value {
        let paths: Vec<JsonPath> =
            paths.iter().map(|path| JsonPath::parse(path).unwrap()).collect();
        let mut costs = StreamCosts::new(paths.into(), 200);
        stream.as_bytes().chunks(7).for_each(|part| costs.push(part));
        assert!(costs.awaits_more());
        if is_complete {
            costs.on_end();
        }
        let body = costs.into_body();
        assert_eq!(body.is_invalid, body.value.is_null());
        body.value
    }

    fn stream(events: &[&str]) -> String {
        events.iter().map(|event| format!("data: {event}\n\n")).collect()
    }

    const TOTAL: &str = "usage.total_tokens";

    #[test]
    fn the_last_chunk_of_a_completion_has_the_tokens() {
        let chunks = [
            r#"{"choices":[{"delta":{"content":"total_tokens"}}],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":21}}"#,
            "[DONE]",
        ];
        assert_eq!(body(&[TOTAL], &stream(&chunks), true), json!({"usage": {"total_tokens": 21}}));
        assert_eq!(body(&[TOTAL], &stream(&chunks[..1]), true), Value::Null);
    }

    #[test]
    fn the_first_and_the_last_event_of_a_message_have_the_tokens() {
        let events = [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Olá"}}"#,
            r#"{"type":"message_delta","usage":{"output_tokens":7}}"#,
            r#"{"type":"message_delta","usage":{"input_tokens":26,"output_tokens":15}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        let paths = ["usage.input_tokens", "message.usage.input_tokens", "usage.output_tokens"];
        let found = |events: &[&str]| body(&paths, &stream(events), true);
        assert_eq!(
            found(&events),
            json!({
                "usage": {"input_tokens": 26, "output_tokens": 15},
                "message": {"usage": {"input_tokens": 25}},
            })
        );
        assert_eq!(found(&events[..1]), json!({"message": {"usage": {"input_tokens": 25}}}));
    }

    #[test]
    fn a_stream_that_breaks_off_has_no_costs() {
        let usage = stream(&[r#"{"usage":{"total_tokens":21}}"#]);
        assert_eq!(body(&[TOTAL], &usage, true), json!({"usage": {"total_tokens": 21}}));
        assert_eq!(body(&[TOTAL], &usage, false), Value::Null);
    }

    #[test]
    fn events_that_cannot_be_read_are_skipped() {
        let large = format!(r#"{{"usage":{{"total_tokens":99}},"x":"{}"}}"#, "x".repeat(200));
        for unreadable in [
            large.as_str(),
            r#"{"usage":{"total_tokens":-1}}"#,
            r#"{"usage":{"total_tokens":1.5}}"#,
            r#"{"usage":{"total_tokens":98,"total_tokens":99}}"#,
            r#"{"usage":{"total_tokens":99}"#,
        ] {
            assert_eq!(body(&[TOTAL], &stream(&[unreadable]), true), Value::Null, "{unreadable}");
            let both = stream(&[r#"{"usage":{"total_tokens":21}}"#, unreadable]);
            let expected = json!({"usage": {"total_tokens": 21}});
            assert_eq!(body(&[TOTAL], &both, true), expected, "{unreadable}");
        }
    }
}
