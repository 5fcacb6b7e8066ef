-- Attempts of single keys by minute, if [records] keys_per_minute is set.
CREATE TABLE attempts (
    subject  INTEGER NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
    minute   INTEGER NOT NULL,
    allowed  INTEGER NOT NULL,
    denied   INTEGER NOT NULL,
    blocked  INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (subject, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_by_minute ON attempts (minute);

-- Attempts at a policy that started no block, by minute: of each key that is counted alone, and of
-- all others together, without an identifier. The block of an operator is no attempt.
CREATE VIEW unblocked_attempts AS
SELECT a.minute,
       s.namespace,
       s.policy AS action,
       s.identifier,
       a.first_at,
       a.last_at,
       a.allowed + a.denied + a.blocked - (
           SELECT count(*) FROM history AS h
           WHERE h.subject = a.subject
             AND h.at >= a.minute * 60000000 AND h.at < (a.minute + 1) * 60000000
             AND h.act IN ('started', 'extended') AND h.origin <> 'operator' AND h.shadow = 0
       ) AS attempts
FROM attempts AS a
JOIN subjects AS s ON s.id = a.subject
UNION ALL
SELECT c.minute,
       c.namespace,
       c.policy,
       NULL,
       c.minute * 60000000,
       c.minute * 60000000,
       c.total - coalesce((
           SELECT sum(a.allowed + a.denied + a.blocked)
           FROM attempts AS a JOIN subjects AS s ON s.id = a.subject
           WHERE a.minute = c.minute AND s.namespace = c.namespace AND s.policy = c.policy
       ), 0) - (
           SELECT count(*) FROM history AS h
           JOIN subjects AS s ON s.id = h.subject
           WHERE s.namespace = c.namespace AND s.policy = c.policy
             AND h.at >= c.minute * 60000000 AND h.at < (c.minute + 1) * 60000000
             AND h.act IN ('started', 'extended') AND h.origin <> 'operator' AND h.shadow = 0
             AND NOT EXISTS (SELECT 1 FROM attempts AS a
                             WHERE a.subject = h.subject AND a.minute = c.minute)
       )
FROM (SELECT minute, namespace, policy, sum(allowed + denied + blocked) AS total
      FROM counts WHERE policy <> '' GROUP BY minute, namespace, policy) AS c;

-- One row per attempt at a policy; blocked_until is set if it started or extended a block. The
-- blocks of operators are rows too. json_each makes as many rows as there are attempts.
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
WHERE h.act IN ('started', 'extended') AND h.shadow = 0
UNION ALL
SELECT NULL,
       u.identifier,
       u.action,
       1,
       strftime('%Y-%m-%dT%H:%M:%S', u.first_at / 1000000, 'unixepoch')
           || printf('.%03dZ', u.first_at / 1000 % 1000),
       strftime('%Y-%m-%dT%H:%M:%S', u.last_at / 1000000, 'unixepoch')
           || printf('.%03dZ', u.last_at / 1000 % 1000),
       NULL,
       strftime('%Y-%m-%dT%H:%M:%S', u.minute * 60, 'unixepoch') || '.000Z',
       u.namespace,
       NULL,
       NULL,
       NULL,
       NULL
FROM unblocked_attempts AS u
JOIN json_each(CASE WHEN u.attempts > 0
    THEN '[0' || replace(hex(zeroblob(u.attempts - 1)), '00', ',0') || ']' ELSE '[]' END);

-- Views cannot be changed. The error names the call that does what is meant.
CREATE TRIGGER buyer_rate_limits_insert INSTEAD OF INSERT ON buyer_rate_limits BEGIN
    SELECT RAISE(ABORT, 'buyer_rate_limits is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER buyer_rate_limits_update INSTEAD OF UPDATE ON buyer_rate_limits BEGIN
    SELECT RAISE(ABORT, 'buyer_rate_limits is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER buyer_rate_limits_delete INSTEAD OF DELETE ON buyer_rate_limits BEGIN
    SELECT RAISE(ABORT, 'buyer_rate_limits is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER ip_blocklist_insert INSTEAD OF INSERT ON ip_blocklist BEGIN
    SELECT RAISE(ABORT, 'ip_blocklist is read-only: add entries with POST /v1/blocklist and remove them with DELETE /v1/blocklist, or with catraca blocklist');
END;
CREATE TRIGGER ip_blocklist_update INSTEAD OF UPDATE ON ip_blocklist BEGIN
    SELECT RAISE(ABORT, 'ip_blocklist is read-only: add entries with POST /v1/blocklist and remove them with DELETE /v1/blocklist, or with catraca blocklist');
END;
CREATE TRIGGER ip_blocklist_delete INSTEAD OF DELETE ON ip_blocklist BEGIN
    SELECT RAISE(ABORT, 'ip_blocklist is read-only: add entries with POST /v1/blocklist and remove them with DELETE /v1/blocklist, or with catraca blocklist');
END;
CREATE TRIGGER rate_limit_tracking_insert INSTEAD OF INSERT ON rate_limit_tracking BEGIN
    SELECT RAISE(ABORT, 'rate_limit_tracking is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER rate_limit_tracking_update INSTEAD OF UPDATE ON rate_limit_tracking BEGIN
    SELECT RAISE(ABORT, 'rate_limit_tracking is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER rate_limit_tracking_delete INSTEAD OF DELETE ON rate_limit_tracking BEGIN
    SELECT RAISE(ABORT, 'rate_limit_tracking is read-only: block callers with POST /v1/blocks and release them with DELETE /v1/blocks/ID, or with catraca blocks');
END;
CREATE TRIGGER attempts_by_action_insert INSTEAD OF INSERT ON attempts_by_action BEGIN
    SELECT RAISE(ABORT, 'attempts_by_action is read-only: checks count themselves: POST /v1/check');
END;
CREATE TRIGGER attempts_by_action_update INSTEAD OF UPDATE ON attempts_by_action BEGIN
    SELECT RAISE(ABORT, 'attempts_by_action is read-only: checks count themselves: POST /v1/check');
END;
CREATE TRIGGER attempts_by_action_delete INSTEAD OF DELETE ON attempts_by_action BEGIN
    SELECT RAISE(ABORT, 'attempts_by_action is read-only: checks count themselves: POST /v1/check');
END;
