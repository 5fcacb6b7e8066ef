-- Attempts of single keys by minute, if [records] keys_per_minute is set.
CREATE TABLE catraca.attempts (
    subject  bigint NOT NULL REFERENCES catraca.subjects (id) ON DELETE CASCADE,
    minute   bigint NOT NULL,
    allowed  bigint NOT NULL,
    denied   bigint NOT NULL,
    blocked  bigint NOT NULL,
    first_at bigint NOT NULL,
    last_at  bigint NOT NULL,
    PRIMARY KEY (subject, minute)
);
CREATE INDEX attempts_by_minute ON catraca.attempts (minute);

-- Attempts at a policy that started no block, by minute: of each key that is counted alone, and of
-- all others together, without an identifier. The block of an operator is no attempt.
CREATE VIEW catraca.unblocked_attempts AS
SELECT a.minute,
       s.namespace,
       s.policy AS action,
       s.identifier,
       a.first_at,
       a.last_at,
       a.allowed + a.denied + a.blocked - (
           SELECT count(*) FROM catraca.history AS h
           WHERE h.subject = a.subject
             AND h.at >= a.minute * 60000000 AND h.at < (a.minute + 1) * 60000000
             AND h.act IN ('started', 'extended') AND h.origin <> 'operator' AND NOT h.shadow
       ) AS attempts
FROM catraca.attempts AS a
JOIN catraca.subjects AS s ON s.id = a.subject
UNION ALL
SELECT c.minute,
       c.namespace,
       c.policy,
       NULL,
       c.minute * 60000000,
       c.minute * 60000000,
       c.total - coalesce((
           SELECT sum(a.allowed + a.denied + a.blocked)
           FROM catraca.attempts AS a JOIN catraca.subjects AS s ON s.id = a.subject
           WHERE a.minute = c.minute AND s.namespace = c.namespace AND s.policy = c.policy
       ), 0)::bigint - (
           SELECT count(*) FROM catraca.history AS h
           JOIN catraca.subjects AS s ON s.id = h.subject
           WHERE s.namespace = c.namespace AND s.policy = c.policy
             AND h.at >= c.minute * 60000000 AND h.at < (c.minute + 1) * 60000000
             AND h.act IN ('started', 'extended') AND h.origin <> 'operator' AND NOT h.shadow
             AND NOT EXISTS (SELECT 1 FROM catraca.attempts AS a
                             WHERE a.subject = h.subject AND a.minute = c.minute)
       )
FROM (SELECT minute, namespace, policy, sum(allowed + denied + blocked)::bigint AS total
      FROM catraca.counts WHERE policy <> '' GROUP BY minute, namespace, policy) AS c;

-- One row per attempt at a policy; blocked_until is set if it started or extended a block. The
-- blocks of operators are rows too.
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
WHERE h.act IN ('started', 'extended') AND NOT h.shadow
UNION ALL
SELECT NULL::uuid,
       u.identifier,
       u.action,
       1,
       catraca.instant(u.first_at),
       catraca.instant(u.last_at),
       NULL::timestamptz,
       catraca.instant(u.minute * 60000000),
       u.namespace,
       NULL::text,
       NULL::text,
       NULL::text,
       NULL::bigint
FROM catraca.unblocked_attempts AS u
CROSS JOIN LATERAL generate_series(1::bigint, u.attempts);

-- Views cannot be changed. The error names the call that does what is meant.
CREATE FUNCTION catraca.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is read-only: %', TG_TABLE_NAME, TG_ARGV[0];
END
$$;
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON catraca.buyer_rate_limits
FOR EACH ROW EXECUTE FUNCTION catraca.refuse_change(
    'block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks'
);
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON catraca.ip_blocklist
FOR EACH ROW EXECUTE FUNCTION catraca.refuse_change(
    'add entries with POST /v1/blocklist and remove them with DELETE /v1/blocklist, or with catraca blocklist'
);
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON catraca.rate_limit_tracking
FOR EACH ROW EXECUTE FUNCTION catraca.refuse_change(
    'block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks'
);
CREATE TRIGGER read_only INSTEAD OF INSERT OR UPDATE OR DELETE ON catraca.attempts_by_action
FOR EACH ROW EXECUTE FUNCTION catraca.refuse_change(
    'checks count themselves: POST /v1/check'
);
