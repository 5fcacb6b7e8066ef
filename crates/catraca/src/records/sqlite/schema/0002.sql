-- The fingerprint of the secret that keys are derived from, so that another one is detected.
CREATE TABLE secrets (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Active blocks, for SQL shells whose current time has only whole seconds.
DROP VIEW rate_limit_tracking;
CREATE VIEW rate_limit_tracking AS
SELECT s.identifier AS blockedID,
       CASE WHEN b.until = 9007199254740991 THEN '9999-12-31T23:59:59.999Z'
            ELSE strftime('%Y-%m-%dT%H:%M:%S', b.until / 1000000, 'unixepoch')
                || printf('.%03dZ', b.until / 1000 % 1000) END AS unblockTime,
       b.reason,
       s.namespace AS site,
       s.policy
FROM blocks AS b
JOIN subjects AS s ON s.id = b.subject
WHERE b.shadow = 0 AND b.until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
