-- The level of a block after each step, and the act that started or extended several blocks at
-- once, such as a ban of a customer and a session: its blocks are shown and released together.
ALTER TABLE history ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history ADD COLUMN act_id TEXT;
ALTER TABLE blocks ADD COLUMN act_id TEXT;
CREATE INDEX history_by_act ON history (act_id) WHERE act_id IS NOT NULL;
CREATE INDEX blocks_by_act ON blocks (act_id) WHERE act_id IS NOT NULL;

-- Block events and active blocks, with their level.
DROP VIEW buyer_rate_limits;
CREATE VIEW buyer_rate_limits AS
SELECT printf('00000000-0000-8000-8000-%012x', h.id) AS id,
       s.identifier,
       s.policy AS action,
       1 AS attempts,
       strftime('%Y-%m-%dT%H:%M:%S', h.at / 1000000, 'unixepoch')
           || printf('.%03dZ', h.at / 1000 % 1000) AS first_attempt_at,
       strftime('%Y-%m-%dT%H:%M:%S', h.at / 1000000, 'unixepoch')
           || printf('.%03dZ', h.at / 1000 % 1000) AS last_attempt_at,
       CASE WHEN h.until = 9007199254740991 THEN '9999-12-31T23:59:59.999Z'
            ELSE strftime('%Y-%m-%dT%H:%M:%S', h.until / 1000000, 'unixepoch')
                || printf('.%03dZ', h.until / 1000 % 1000) END AS blocked_until,
       strftime('%Y-%m-%dT%H:%M:%S', h.at / 1000000, 'unixepoch')
           || printf('.%03dZ', h.at / 1000 % 1000) AS created_at,
       s.namespace,
       h.origin,
       h.reason,
       h.by,
       h.level
FROM history AS h
JOIN subjects AS s ON s.id = h.subject
WHERE h.act IN ('started', 'extended') AND h.shadow = 0;

DROP VIEW rate_limit_tracking;
CREATE VIEW rate_limit_tracking AS
SELECT s.identifier AS blockedID,
       CASE WHEN b.until = 9007199254740991 THEN '9999-12-31T23:59:59.999Z'
            ELSE strftime('%Y-%m-%dT%H:%M:%S', b.until / 1000000, 'unixepoch')
                || printf('.%03dZ', b.until / 1000 % 1000) END AS unblockTime,
       b.reason,
       s.namespace AS site,
       s.policy,
       b.level
FROM blocks AS b
JOIN subjects AS s ON s.id = b.subject
WHERE b.shadow = 0 AND b.until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
