-- The level of a block after each step, and the act that started or extended several blocks at
-- once, such as a ban of a customer and a session: its blocks are shown and released together.
ALTER TABLE catraca.history ADD COLUMN level bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.history ADD COLUMN act_id text;
ALTER TABLE catraca.blocks ADD COLUMN act_id text;
CREATE INDEX history_by_act ON catraca.history (act_id) WHERE act_id IS NOT NULL;
CREATE INDEX blocks_by_act ON catraca.blocks (act_id) WHERE act_id IS NOT NULL;

-- Block events and active blocks, with their level.
CREATE OR REPLACE VIEW catraca.buyer_rate_limits AS
SELECT ('00000000-0000-8000-8000-' || lpad(to_hex(h.id), 12, '0'))::uuid AS id,
       s.identifier,
       s.policy AS action,
       1 AS attempts,
       catraca.instant(h.at) AS first_attempt_at,
       catraca.instant(h.at) AS last_attempt_at,
       catraca.instant(h.until) AS blocked_until,
       catraca.instant(h.at) AS created_at,
       s.namespace,
       h.origin,
       h.reason,
       h.by,
       h.level
FROM catraca.history AS h
JOIN catraca.subjects AS s ON s.id = h.subject
WHERE h.act IN ('started', 'extended') AND NOT h.shadow;

CREATE OR REPLACE VIEW catraca.rate_limit_tracking AS
SELECT s.identifier AS blockedID,
       catraca.instant(b.until) AS unblockTime,
       b.reason,
       s.namespace AS site,
       s.policy,
       b.level
FROM catraca.blocks AS b
JOIN catraca.subjects AS s ON s.id = b.subject
WHERE NOT b.shadow AND b.until > (extract(epoch FROM now()) * 1000000)::bigint;
