//! The script as one text. Must not change it: what was tested is what is sent.

/// The whole script, joined at build time. A name must be known before it is used, hence the order.
pub const SCRIPT: &str = concat!(
    include_str!("quick.lua"),
    include_str!("decide.lua"),
    include_str!("bucket.lua"),
    include_str!("entry.lua"),
    include_str!("refund.lua"),
    include_str!("window.lua"),
    include_str!("fixed.lua"),
    include_str!("leases.lua"),
    include_str!("meter.lua"),
    include_str!("block.lua"),
    include_str!("reference.lua"),
    include_str!("check.lua"),
    include_str!("credit.lua"),
    include_str!("watch.lua"),
    include_str!("settle.lua"),
    include_str!("act.lua"),
    include_str!("apply.lua"),
);
