//! What nodes tell each other through Redis: a hash of live nodes, a stream of notices, and a hash
//! of rules for nodes without shared records.
//!
//! All of it is in the group of the shared keys, so that in a cluster one server has it. Each call
//! is one round trip.

use redis::{Pipeline, RedisResult, Value, cmd, pipe};

use super::connection::LiveConnection;
use super::script::send;
use super::status::{SHARED_GROUP, shared_key};
use super::store::RedisStore;
use crate::store::{
    NOTICES_PER_REPLY, NodeMessage, NodeReply, RulePage, RuleStamp, RuleWriteMode, StampedRule,
    StoreError,
};

/// Sent as a text, which is short beside the reply.
const EXCHANGE_SCRIPT: &str = include_str!("exchange.lua");
/// Sent as a text: rules are written when an operator acts, and after a loss of data.
const RULES_SCRIPT: &str = include_str!("rules.lua");
/// The length of a stamp, as `rules.lua` describes it.
const STAMP_BYTES: usize = 28;
/// How many rules one page has, about.
const RULES_PER_PAGE: usize = 1_000;

impl RedisStore {
    pub(super) async fn exchange_notices(
        &self,
        message: &NodeMessage<'_>,
    ) -> Result<NodeReply, StoreError> {
        let prefix = self.prefix(SHARED_GROUP);
        let nodes = shared_key(&prefix, "nodes");
        let notices = shared_key(&prefix, "notices");
        let mut exchange = cmd("EVAL");
        exchange.arg(EXCHANGE_SCRIPT).arg(2).arg(&nodes).arg(&notices);
        exchange.arg(message.node).arg(message.state);
        exchange.arg(next_id(message.after)).arg(NOTICES_PER_REPLY);
        exchange.arg(message.gone.len()).arg(message.gone).arg(message.notices);
        let call = |live, asking| send::<ExchangeReply>(live, exchange.clone(), asking);
        let (stored, nodes, notices) = self.round_trip(SHARED_GROUP, call).await?;
        let nodes = nodes.chunks_exact(2);
        let nodes = nodes.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
        Ok(NodeReply { stored, nodes, notices: read_entries(notices) })
    }

    /// Reads the oldest notices, then drops them. If two nodes do so at once, both return the same
    /// ones, and none is lost.
    pub(super) async fn trim_to(&self, keep: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let notices = shared_key(&self.prefix(SHARED_GROUP), "notices");
        let mut count = pipe();
        count.cmd("XLEN").arg(&notices);
        let call = |live, _| query::<(u64,)>(live, count.clone());
        let (stored,) = self.round_trip(SHARED_GROUP, call).await?;
        let surplus = stored.saturating_sub(keep);
        if surplus == 0 {
            return Ok(Vec::new());
        }
        let mut trim = pipe();
        trim.cmd("XRANGE").arg(&notices).arg("-").arg("+").arg("COUNT").arg(surplus);
        trim.cmd("XTRIM").arg(&notices).arg("MAXLEN").arg(keep).ignore();
        let call = |live, _| query::<(Vec<Value>,)>(live, trim.clone());
        let (entries,) = self.round_trip(SHARED_GROUP, call).await?;
        Ok(read_entries(entries).into_iter().map(|(_, body)| body).collect())
    }

    /// Writes rules as `rules.lua` describes it, all or none of them.
    pub(super) async fn put_rules(
        &self,
        rules: &[StampedRule],
        mode: RuleWriteMode,
    ) -> Result<(), StoreError> {
        let prefix = self.prefix(SHARED_GROUP);
        let mut write = cmd("EVAL");
        write.arg(RULES_SCRIPT).arg(2);
        write.arg(shared_key(&prefix, "rules")).arg(shared_key(&prefix, "changes"));
        write.arg(match mode {
            RuleWriteMode::Merge => "merge",
            RuleWriteMode::Purge => "purge",
        });
        for rule in rules {
            write.arg(&rule.name).arg(rule_value(rule));
        }
        let call = |live, asking| send::<Vec<u8>>(live, write.clone(), asking);
        self.round_trip(SHARED_GROUP, call).await.map(drop)
    }

    pub(super) async fn scan_rules(&self, from: u64) -> Result<RulePage, StoreError> {
        let key = shared_key(&self.prefix(SHARED_GROUP), "rules");
        let mut scan = pipe();
        scan.cmd("HSCAN").arg(&key).arg(from).arg("COUNT").arg(RULES_PER_PAGE);
        let call = |live, _| query::<((u64, Vec<Value>),)>(live, scan.clone());
        let ((next, fields),) = self.round_trip(SHARED_GROUP, call).await?;
        let pairs = fields.chunks_exact(2);
        let rule = |pair: &[Value]| Some(read_rule(bytes(&pair[0])?, &bytes(&pair[1])?));
        let rules = pairs.filter_map(rule).collect();
        Ok(RulePage { rules, next: Some(next).filter(|next| *next != 0) })
    }
}

/// The value of a rule in the hash.
fn rule_value(rule: &StampedRule) -> Vec<u8> {
    let RuleStamp { micros, tie_breaker } = rule.stamp;
    let mut value = format!("{micros:016}-{tie_breaker:010}:").into_bytes();
    value.extend(rule.body.iter().flatten());
    value
}

/// A rule of the hash. What another program wrote is older than any rule.
fn read_rule(name: Vec<u8>, value: &[u8]) -> StampedRule {
    let Some((stamp, body)) = value.split_at_checked(STAMP_BYTES) else {
        return StampedRule { name, stamp: RuleStamp::default(), body: Some(value.to_vec()) };
    };
    let stamp = std::str::from_utf8(stamp).ok().and_then(|stamp| {
        let (micros, tie_breaker) = stamp.strip_suffix(':')?.split_once('-')?;
        Some(RuleStamp { micros: micros.parse().ok()?, tie_breaker: tie_breaker.parse().ok()? })
    });
    let body = Some(body.to_vec()).filter(|body| !body.is_empty());
    match stamp {
        Some(stamp) => StampedRule { name, stamp, body },
        None => StampedRule { name, stamp: RuleStamp::default(), body: Some(value.to_vec()) },
    }
}

/// The id after this one. An exclusive range would need Redis 6.2.
fn next_id(after: &str) -> String {
    let parsed = after
        .split_once('-')
        .and_then(|(ms, number)| Some((ms.parse::<u64>().ok()?, number.parse::<u64>().ok()?)));
    match parsed {
        None => "-".to_owned(),
        Some((ms, u64::MAX)) => format!("{}-0", ms.saturating_add(1)),
        Some((ms, number)) => format!("{ms}-{}", number + 1),
    }
}

/// The length of the stream, the fields of the hash, and the entries.
type ExchangeReply = (u64, Vec<Value>, Vec<Value>);

async fn query<T: redis::FromRedisValue>(
    mut live: LiveConnection,
    commands: Pipeline,
) -> RedisResult<T> {
    commands.query_async(&mut live.connection).await
}

/// Entries of a stream: each is its id and its fields. Anything else was written by another
/// program and is skipped.
fn read_entries(entries: Vec<Value>) -> Vec<(String, Vec<u8>)> {
    let read = |entry: Value| {
        let Value::Array(parts) = entry else { return None };
        let [id, Value::Array(fields)] = &parts[..] else { return None };
        Some((text(id), bytes(fields.get(1)?)?))
    };
    entries.into_iter().filter_map(read).collect()
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    let bytes = bytes(value).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_were_written() {
        let stamp = RuleStamp { micros: 1_800_000_000_000_000, tie_breaker: 7 };
        for body in [Some(b"sealed".to_vec()), None] {
            let rule = StampedRule { name: b"a".to_vec(), stamp, body };
            let value = rule_value(&rule);
            assert_eq!(value.len() - rule.body.as_ref().map_or(0, Vec::len), STAMP_BYTES);
            assert_eq!(read_rule(b"a".to_vec(), &value), rule);
        }
        for foreign in ["x", "a value of another program, longer than a stamp"] {
            let rule = read_rule(b"a".to_vec(), foreign.as_bytes());
            assert_eq!(rule.stamp, RuleStamp::default());
            assert_eq!(rule.body.as_deref(), Some(foreign.as_bytes()));
        }
    }

    #[test]
    fn the_next_id_follows_the_last_one_that_was_read() {
        assert_eq!(next_id(""), "-");
        assert_eq!(next_id("1700000000000-0"), "1700000000000-1");
        assert_eq!(next_id(&format!("5-{}", u64::MAX)), "6-0");
        assert_eq!(next_id("12"), "-");
    }
}
