//! Renders the oracle's catalog as the TOML that the engine parses. Fields at their default are
//! left out.

use std::fmt::Write;

use crate::oracle::catalog::{
    Algorithm, Ban, Catalog, Cost, Credit, Length, ListEntry, Mode, OnMissing, Policy, Price,
    REMEMBER, Tier, Watch, default_hold,
};
use crate::oracle::outcome::BODY_BYTES_MAX;
use crate::oracle::{FOREVER, Micros};

/// A catalog as TOML.
pub fn toml(catalog: &Catalog) -> String {
    let mut text = String::new();
    if let Some(default) = &catalog.default {
        line(&mut text, "default", &quote(default));
    }
    for policy in &catalog.policies {
        write_policy(&mut text, policy);
    }
    for gate in &catalog.gates {
        let _ = writeln!(text, "\n[gate.{}]\npolicies = {}", gate.name, names(&gate.policies));
    }
    let _ = writeln!(text, "\n[settle]\nbody_bytes_max = {BODY_BYTES_MAX}");
    for fact in &catalog.facts {
        let about = format!("[facts.{}.{}]", fact.attribute, quote(&fact.about));
        text.push_str(&format!("{about}\n{} = {}\n", fact.name, quote(&fact.value)));
    }
    write_list(&mut text, "allowlist", &catalog.allowlist);
    write_list(&mut text, "blocklist", &catalog.blocklist);
    text
}

fn write_list(text: &mut String, name: &str, entries: &[ListEntry]) {
    for entry in entries {
        let attribute = quote(&entry.attribute);
        let value = quote(&entry.value);
        let _ = writeln!(text, "\n[[{name}]]\nattribute = {attribute}\nvalue = {value}");
        optional(text, "until", (entry.until != FOREVER).then(|| quote(&instant(entry.until))));
    }
}

/// An instant of the day on which every trace starts.
fn instant(at: Micros) -> String {
    let day = at / 86_400_000_000;
    let second = at / 1_000_000 % 86_400;
    assert_eq!((day, at % 1_000_000), (19_675, 0), "a whole second of 2023-11-14");
    format!("2023-11-14T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

fn write_policy(text: &mut String, policy: &Policy) {
    let _ = writeln!(text, "\n[policy.{}]", policy.name);
    if policy.each.is_empty() {
        let parts: Vec<String> = policy.by.iter().map(|names| names.join("|")).collect();
        line(text, "by", &names(&parts));
    } else {
        line(text, "each", &names(&policy.each));
    }
    // Tiers cannot align their windows: their policy does, even if only they have limits.
    let of_tier = policy.tiers.first().filter(|_| policy.limits_only_tiers());
    let of_tier = of_tier.and_then(|tier| tier.algorithm.as_ref()).map(algorithm);
    let align = of_tier.into_iter().flatten().filter(|(name, _)| *name == "align");
    for (name, value) in algorithm(&policy.terms.algorithm).into_iter().chain(align) {
        line(text, name, &value);
    }
    write_amounts(text, policy);
    write_modes(text, policy);
    write_rules(text, policy);
}

fn write_amounts(text: &mut String, policy: &Policy) {
    for (name, value) in terms(Some(&policy.terms.cost), policy.terms.block.as_ref()) {
        line(text, name, &value);
    }
    let settled = matches!(policy.terms.cost, Cost::Table(_) | Cost::Reported);
    optional(text, "reserve", (settled && policy.reserve != 1).then(|| policy.reserve.to_string()));
    optional(text, "debt", policy.debt.then(|| "true".to_owned()));
    optional(text, "count_denied", policy.count_denied.then(|| "true".to_owned()));
    optional(text, "margin", policy.margin.map(|margin| format!("\"{margin}%\"")));
    let credit = (!policy.terms.credits.is_empty()).then(|| credits(&policy.terms.credits));
    optional(text, "credit", credit);
    let default = default_hold(&policy.terms.algorithm);
    let has_own_hold = policy.limits_only_tiers() || policy.hold != default;
    optional(text, "hold", has_own_hold.then(|| duration(policy.hold)));
    let remember = (policy.remember != REMEMBER).then(|| duration(policy.remember));
    optional(text, "remember", remember);
}

fn write_modes(text: &mut String, policy: &Policy) {
    let mode = match policy.mode {
        Mode::Enforce => None,
        Mode::Shadow => Some(quote("shadow")),
        Mode::Off => Some(quote("off")),
    };
    let on_missing = match policy.on_missing {
        OnMissing::Error => None,
        OnMissing::Skip => Some(quote("skip")),
        OnMissing::Deny => Some(quote("deny")),
    };
    optional(text, "mode", mode);
    optional(text, "on_missing", on_missing);
    optional(text, "otherwise", policy.otherwise.as_deref().map(quote));
}

fn write_rules(text: &mut String, policy: &Policy) {
    // Random traces ban far more often than real traffic, so ban-storm protection is set too high
    // to act: the oracle does not model it.
    let bans = !policy.bans.is_empty() || policy.watch.is_some();
    optional(text, "ban_storm", bans.then(|| rate(1_000_000, 60_000_000)));
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let bans = policy.bans.iter().map(ban).collect();
    optional(text, "ban", (!policy.bans.is_empty()).then(|| list(bans)));
    optional(text, "watch", policy.watch.as_ref().map(watch));
    let tiers = policy.tiers.iter().map(tier).collect();
    optional(text, "tier", (!policy.tiers.is_empty()).then(|| list(tiers)));
}

fn algorithm(algorithm: &Algorithm) -> Vec<(&'static str, String)> {
    match algorithm {
        Algorithm::None => Vec::new(),
        Algorithm::Bucket { size, count, period } => {
            let refill = rate(*count, *period);
            vec![("bucket", format!("{{ size = {size}, refill = {refill} }}"))]
        }
        Algorithm::Window(windows) => match windows.as_slice() {
            [(limit, span)] => vec![("window", rate(*limit, *span))],
            several => {
                let rates: Vec<String> = several.iter().map(|&(l, s)| rate(l, s)).collect();
                vec![("window", format!("[{}]", rates.join(", ")))]
            }
        },
        Algorithm::Fixed { limit, span, aligned } => {
            let align = aligned.then(|| ("align", quote("clock")));
            [("fixed", rate(*limit, *span))].into_iter().chain(align).collect()
        }
        Algorithm::Inflight(limit) => vec![("inflight", limit.to_string())],
    }
}

fn terms(cost: Option<&Cost>, block: Option<&Length>) -> Vec<(&'static str, String)> {
    let cost = match cost {
        None | Some(Cost::Asked) => None,
        Some(Cost::Always(units)) => Some(units.to_string()),
        Some(Cost::Reported) => Some(quote("reported")),
        Some(Cost::Table(prices)) => Some(price_table(prices)),
    };
    let cost = cost.map(|cost| ("cost", cost));
    cost.into_iter().chain(block.map(|block| ("block", length(block)))).collect()
}

fn price_table(prices: &[(String, Price)]) -> String {
    let price = |(key, price): &(String, Price)| match price {
        Price::Units(units) => format!("\"{key}\" = {units}"),
        Price::Drain => format!("\"{key}\" = \"drain\""),
    };
    format!("{{ {} }}", prices.iter().map(price).collect::<Vec<_>>().join(", "))
}

fn credits(credits: &[Credit]) -> String {
    let credit = |credit: &Credit| {
        let on = statuses(&credit.on);
        format!("{} = {{ amount = {}, on = {on} }}", credit.event, credit.amount)
    };
    format!("{{ {} }}", credits.iter().map(credit).collect::<Vec<_>>().join(", "))
}

fn tier(tier: &Tier) -> String {
    let condition = |(name, values): &(String, Vec<String>)| match &**values {
        [value] => format!("{name} = {}", quote(value)),
        values => format!("{name} = {}", names(values)),
    };
    let when: Vec<String> = tier.when.iter().map(condition).collect();
    let mut parts = vec![format!("when = {{ {} }}", when.join(", "))];
    let numbers = tier.algorithm.as_ref().map(algorithm).unwrap_or_default();
    let numbers = numbers.into_iter().filter(|(name, _)| *name != "align");
    let rest = terms(tier.cost.as_ref(), tier.block.as_ref());
    parts.extend(numbers.chain(rest).map(|(name, value)| format!("{name} = {value}")));
    parts.extend(tier.credits.as_deref().map(|list| format!("credit = {}", credits(list))));
    format!("{{ {} }}", parts.join(", "))
}

fn ban(ban: &Ban) -> String {
    let after = ban.after.map(|(count, span)| format!(", after = {}", rate(count, span)));
    format!(
        "{{ when = {}, for = {}, reason = {}{} }}",
        quote(&ban.when.text()),
        length(&ban.length),
        quote(&ban.reason),
        after.unwrap_or_default()
    )
}

fn watch(watch: &Watch) -> String {
    format!(
        "{{ share = {}, of = {}, above = \"{}%\", min = {}, per = {}, ban = {} }}",
        quote(&watch.share[0].to_string()),
        statuses(&watch.of),
        watch.above,
        watch.min,
        duration(watch.per),
        length(&watch.length)
    )
}

fn length(length: &Length) -> String {
    match *length {
        Length::Fixed(length) => duration(length),
        Length::Escalating { first, factor, max, forget } => format!(
            "{{ first = {}, factor = {factor}, max = {}, forget = {} }}",
            duration(first),
            duration(max),
            duration(forget)
        ),
    }
}

fn statuses(codes: &[i64]) -> String {
    names(&codes.iter().map(i64::to_string).collect::<Vec<_>>())
}

fn rate(count: i64, span: Micros) -> String {
    format!("\"{count} per {}\"", span_text(span))
}

fn duration(span: Micros) -> String {
    quote(&span_text(span))
}

/// A length of time in the largest unit that divides it.
pub fn span_text(span: Micros) -> String {
    const UNITS: [(Micros, &str); 5] = [
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "m"),
        (1_000_000, "s"),
        (1_000, "ms"),
    ];
    if span == FOREVER {
        return "forever".to_owned();
    }
    let unit = UNITS.iter().find(|(length, _)| span % length == 0);
    let (length, name) = unit.expect("generated spans are whole milliseconds");
    format!("{}{name}", span / length)
}

fn names<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quote(name.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

fn optional(text: &mut String, name: &str, value: Option<String>) {
    if let Some(value) = value {
        line(text, name, &value);
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {value}");
}
