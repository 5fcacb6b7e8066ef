//! XML as the DICT writes it: bucket states and problems, by a writer that escapes.
//!
//! Signatures are left out: they are the central bank's. Must not write a text by hand.

use catraca::Time;
use catraca::settlement::BucketState;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// The media type of states.
pub const KIND: &str = "application/xml";
/// The media type of problems.
pub const PROBLEM: &str = "application/problem+xml";

/// Where the DICT documents its errors.
const ERRORS: &str = "https://dict.pi.rsfn.net.br/api/v2/error/";
const MINUTE_US: i64 = 60_000_000;
const DAY_US: i64 = 86_400_000_000;
const SECOND_US: i64 = 1_000_000;

type Out = Writer<Vec<u8>>;
type Written = std::io::Result<()>;

/// What stands beside the states.
pub struct About<'a> {
    /// When.
    pub at: Time,
    /// A name for this answer.
    pub correlation: &'a str,
    /// The participant's category, if it is known.
    pub category: Option<&'a str>,
}

/// listBucketStates.
pub fn states(about: &About<'_>, states: &[BucketState]) -> Vec<u8> {
    document(|out| {
        inside(out, "ListPoliciesResponse", |out| {
            head(out, about)?;
            inside(out, "Policies", |out| states.iter().try_for_each(|state| policy(out, state)))
        })
    })
}

/// getBucketState.
pub fn state(about: &About<'_>, state: &BucketState) -> Vec<u8> {
    document(|out| {
        inside(out, "GetPolicyResponse", |out| {
            head(out, about)?;
            policy(out, state)
        })
    })
}

/// A problem of RFC 7807 in XML.
pub fn problem(name: &str, title: &str, status: u16, detail: Option<&str>) -> Vec<u8> {
    document(|out| {
        let root = out.create_element("problem").with_attribute(("xmlns", "urn:ietf:rfc:7807"));
        root.write_inner_content(|out| {
            text(out, "type", &format!("{ERRORS}{name}"))?;
            text(out, "title", title)?;
            text(out, "status", &status.to_string())?;
            detail.map_or(Ok(()), |detail| text(out, "detail", detail))
        })?;
        Ok(())
    })
}

fn head(out: &mut Out, about: &About<'_>) -> Written {
    text(out, "ResponseTime", &about.at.to_rfc3339())?;
    text(out, "CorrelationId", about.correlation)?;
    about.category.map_or(Ok(()), |category| text(out, "Category", category))
}

fn policy(out: &mut Out, state: &BucketState) -> Written {
    let (tokens, seconds) = refill(state.refill_tokens, state.refill_period.micros());
    inside(out, "Policy", |out| {
        text(out, "AvailableTokens", &state.balance.to_string())?;
        text(out, "Capacity", &state.size.to_string())?;
        text(out, "RefillTokens", &tokens.to_string())?;
        text(out, "RefillPeriodSec", &seconds.to_string())?;
        text(out, "Name", &state.policy.to_ascii_uppercase())
    })
}

/// A refill in whole seconds: by the minute or the day where that is exact, as the DICT says it.
fn refill(tokens: i64, period_us: i64) -> (i64, i64) {
    let whole = [MINUTE_US, DAY_US].into_iter().find(|long| long % period_us == 0);
    let long = whole.unwrap_or_else(|| period_us / gcd(period_us, SECOND_US) * SECOND_US);
    (tokens * (long / period_us), long / SECOND_US)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn inside(out: &mut Out, name: &str, content: impl FnOnce(&mut Out) -> Written) -> Written {
    out.create_element(name).write_inner_content(content)?;
    Ok(())
}

fn text(out: &mut Out, name: &str, text: &str) -> Written {
    // What XML cannot hold at all, such as a bell, is dropped.
    let fits = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let text: String = text.chars().filter(fits).collect();
    out.create_element(name).write_text_content(BytesText::new(&text))?;
    Ok(())
}

/// Writing to memory cannot fail.
fn document(content: impl FnOnce(&mut Out) -> Written) -> Vec<u8> {
    let mut out = Writer::new(Vec::new());
    let declared = out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    let _ = declared.and_then(|()| content(&mut out));
    out.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refill_is_told_as_the_dict_tells_it() {
        for (given, told) in [
            ((1, 30_000_000), (2, 60)),
            ((1, 2_400), (25_000, 60)),
            ((1, 2_160_000_000), (40, 86_400)),
            ((1, 7_000_000), (1, 7)),
            ((3, 1_500_000), (120, 60)),
            ((1, 7_000_001), (1_000_000, 7_000_001)),
        ] {
            assert_eq!(refill(given.0, given.1), told);
        }
    }
}
