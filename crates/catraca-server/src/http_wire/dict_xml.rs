//! XML in the elements of the DICT, the key directory of Brazil's Pix: bucket states and problems.
//!
//! Unsigned: only the central bank can sign. Texts go through a writer that escapes them.

use catraca::Time;
use catraca::core::rate::Rate;
use catraca::settlement::BucketState;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// The media type of states.
pub const XML: &str = "application/xml";
/// The media type of problems.
pub const PROBLEM_XML: &str = "application/problem+xml";

/// Where the DICT documents its errors.
const ERRORS_URL: &str = "https://dict.pi.rsfn.net.br/api/v2/error/";
const MINUTE_US: i64 = 60_000_000;
const DAY_US: i64 = 86_400_000_000;
const SECOND_US: i64 = 1_000_000;

type XmlWriter = Writer<Vec<u8>>;
type XmlResult = std::io::Result<()>;

/// The elements before the bucket states.
pub struct DictHeader<'a> {
    /// The time of the response.
    pub at: Time,
    /// An id of this response.
    pub correlation: &'a str,
    /// The participant's category, if it is known.
    pub category: Option<&'a str>,
}

/// The response of the DICT's `listBucketStates`.
pub fn states(header: &DictHeader<'_>, states: &[BucketState]) -> Vec<u8> {
    document(|out| {
        element(out, "ListPoliciesResponse", |out| {
            write_header(out, header)?;
            element(out, "Policies", |out| states.iter().try_for_each(|state| policy(out, state)))
        })
    })
}

/// The response of the DICT's `getBucketState`.
pub fn state(header: &DictHeader<'_>, state: &BucketState) -> Vec<u8> {
    document(|out| {
        element(out, "GetPolicyResponse", |out| {
            write_header(out, header)?;
            policy(out, state)
        })
    })
}

/// A problem in the XML format of RFC 7807.
pub fn problem(name: &str, title: &str, status: u16, detail: Option<&str>) -> Vec<u8> {
    document(|out| {
        let root = out.create_element("problem").with_attribute(("xmlns", "urn:ietf:rfc:7807"));
        root.write_inner_content(|out| {
            text_element(out, "type", &format!("{ERRORS_URL}{name}"))?;
            text_element(out, "title", title)?;
            text_element(out, "status", &status.to_string())?;
            detail.map_or(Ok(()), |detail| text_element(out, "detail", detail))
        })?;
        Ok(())
    })
}

/// In the order of the DICT's schema, which requires a signature: ours is empty.
fn write_header(out: &mut XmlWriter, header: &DictHeader<'_>) -> XmlResult {
    out.create_element("Signature").write_empty()?;
    text_element(out, "CorrelationId", header.correlation)?;
    text_element(out, "ResponseTime", &header.at.to_rfc3339())?;
    header.category.map_or(Ok(()), |category| text_element(out, "Category", category))
}

fn policy(out: &mut XmlWriter, state: &BucketState) -> XmlResult {
    let (tokens, seconds) = refill(state.refill);
    element(out, "Policy", |out| {
        text_element(out, "AvailableTokens", &state.balance.to_string())?;
        text_element(out, "Capacity", &state.size.to_string())?;
        text_element(out, "RefillTokens", &tokens.to_string())?;
        text_element(out, "RefillPeriodSec", &seconds.to_string())?;
        text_element(out, "Name", &state.policy.to_ascii_uppercase())
    })
}

/// A refill rate as tokens per whole seconds, as the catalog writes it. A period with a fraction of
/// a second is stated per minute or per day, as the DICT states rates, where that is exact;
/// otherwise by the shortest period that is a whole number of seconds.
fn refill(written: Rate) -> (i64, i64) {
    let Rate { amount: tokens, per } = written;
    let period_us = per.micros();
    if period_us % SECOND_US == 0 {
        return (tokens, period_us / SECOND_US);
    }
    let exact = [MINUTE_US, DAY_US].into_iter().find(|period| period % period_us == 0);
    // The least common multiple of the period and a second.
    let stated_us = exact.unwrap_or_else(|| period_us / gcd(period_us, SECOND_US) * SECOND_US);
    (tokens * (stated_us / period_us), stated_us / SECOND_US)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn element(
    out: &mut XmlWriter,
    name: &str,
    content: impl FnOnce(&mut XmlWriter) -> XmlResult,
) -> XmlResult {
    out.create_element(name).write_inner_content(content)?;
    Ok(())
}

fn text_element(out: &mut XmlWriter, name: &str, text: &str) -> XmlResult {
    // XML 1.0 cannot contain other control characters, not even escaped.
    let is_allowed = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let text: String = text.chars().filter(is_allowed).collect();
    out.create_element(name).write_text_content(BytesText::new(&text))?;
    Ok(())
}

/// Writes a document; errors are ignored, because writing to memory cannot fail.
fn document(content: impl FnOnce(&mut XmlWriter) -> XmlResult) -> Vec<u8> {
    let mut out = Writer::new(Vec::new());
    let declaration = out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    let _ = declaration.and_then(|()| content(&mut out));
    out.into_inner()
}

#[cfg(test)]
mod tests {
    use catraca::Span;

    use super::*;

    #[test]
    fn a_refill_is_stated_as_written_or_per_minute_or_day_where_that_is_exact() {
        for (amount, period_us, stated) in [
            (25_000, 60_000_000, (25_000, 60)),
            (60, 60_000_000, (60, 60)),
            (40, 86_400_000_000, (40, 86_400)),
            (1, 7_000_000, (1, 7)),
            (1, 2_400, (25_000, 60)),
            (3, 1_500_000, (120, 60)),
            (1, 7_000_001, (1_000_000, 7_000_001)),
        ] {
            let per = Span::from_micros(period_us);
            assert_eq!(refill(Rate { amount, per }), stated);
        }
    }
}
