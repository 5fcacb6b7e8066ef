-- The records, version 1. Times are microseconds since the Unix epoch; 2^53 - 1 means forever.
-- Values of private attributes are pseudonyms in every column.

-- The keys of blocks and debts: one row per (namespace, policy, parts).
CREATE TABLE subjects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        BLOB NOT NULL UNIQUE,
    namespace  TEXT NOT NULL,
    policy     TEXT NOT NULL,
    identifier TEXT NOT NULL,
    parts      TEXT NOT NULL
) STRICT;

CREATE TABLE parts (
    attribute TEXT NOT NULL,
    value     TEXT NOT NULL,
    subject   INTEGER NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
    PRIMARY KEY (attribute, value, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_by_subject ON parts (subject);

-- The newest state of each block; `key` is repeated here, so that a start reads one table. `freed`
-- is when an operator last released or reset it.
CREATE TABLE blocks (
    subject INTEGER PRIMARY KEY REFERENCES subjects (id) ON DELETE CASCADE,
    key     BLOB NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    freed   INTEGER,
    shadow  INTEGER NOT NULL DEFAULT 0,
    origin  TEXT NOT NULL,
    reason  TEXT,
    status  INTEGER,
    message TEXT,
    by      TEXT
) STRICT;
CREATE INDEX blocks_by_start ON blocks (since, subject);
CREATE INDEX blocks_by_end ON blocks (until);
CREATE INDEX blocks_freed ON blocks (freed) WHERE freed IS NOT NULL;

-- The history of every block; rows are only added.
CREATE TABLE history (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    subject INTEGER NOT NULL REFERENCES subjects (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    act     TEXT NOT NULL,
    until   INTEGER NOT NULL,
    shadow  INTEGER NOT NULL DEFAULT 0,
    origin  TEXT NOT NULL,
    reason  TEXT,
    by      TEXT
) STRICT;
CREATE INDEX history_by_subject ON history (subject, id);
CREATE INDEX history_by_time ON history (at);

CREATE TABLE debts (
    subject INTEGER PRIMARY KEY REFERENCES subjects (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    balance INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    period  INTEGER NOT NULL
) STRICT;

-- The attribute of an address range is empty.
CREATE TABLE lists (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    list      TEXT NOT NULL,
    attribute TEXT NOT NULL,
    value     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    until     INTEGER,
    reason    TEXT,
    by        TEXT,
    UNIQUE (list, attribute, value)
) STRICT;

CREATE TABLE facts (
    attribute TEXT NOT NULL,
    value     TEXT NOT NULL,
    name      TEXT NOT NULL,
    fact      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    by        TEXT,
    PRIMARY KEY (attribute, value, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE modes (
    policy TEXT PRIMARY KEY,
    mode   TEXT NOT NULL,
    at     INTEGER NOT NULL,
    by     TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE revisions (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    revision TEXT NOT NULL,
    policies INTEGER,
    by       TEXT
) STRICT;

-- `about` finds the actions about one attribute's value, `subject` those about one subject.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL,
    act     TEXT NOT NULL,
    target  TEXT NOT NULL,
    why     TEXT,
    before  TEXT,
    after   TEXT,
    about   TEXT,
    subject INTEGER
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_about ON audit (about) WHERE about IS NOT NULL;
CREATE INDEX audit_by_subject ON audit (subject) WHERE subject IS NOT NULL;

-- Decisions by minute. An empty policy counts whole decisions of the gate, one per decision.
CREATE TABLE counts (
    minute    INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    action    TEXT NOT NULL,
    policy    TEXT NOT NULL,
    allowed   INTEGER NOT NULL,
    denied    INTEGER NOT NULL,
    blocked   INTEGER NOT NULL,
    PRIMARY KEY (minute, namespace, action, policy)
) STRICT, WITHOUT ROWID;

-- One row per block event.
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
       h.by
FROM history AS h
JOIN subjects AS s ON s.id = h.subject
WHERE h.act IN ('started', 'extended') AND h.shadow = 0;

-- Address ranges on the blocklist; without expires_at an entry is active until it is removed.
CREATE VIEW ip_blocklist AS
SELECT printf('00000000-0000-8000-8000-%012x', id) AS id,
       value AS ip_address,
       reason,
       strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch')
           || printf('.%03dZ', at / 1000 % 1000) AS blocked_at,
       strftime('%Y-%m-%dT%H:%M:%S', until / 1000000, 'unixepoch')
           || printf('.%03dZ', until / 1000 % 1000) AS expires_at,
       by
FROM lists
WHERE list = 'blocklist' AND attribute = '';

-- Active blocks.
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
WHERE b.shadow = 0 AND b.until > CAST(unixepoch('subsec') * 1000000 AS INTEGER);

-- Attempts by minute and action; attempts = allowed + denied + blocked.
CREATE VIEW attempts_by_action AS
SELECT strftime('%Y-%m-%dT%H:%M:00.000Z', minute * 60, 'unixepoch') AS minute,
       namespace,
       action,
       allowed + denied + blocked AS attempts,
       allowed,
       denied,
       blocked
FROM counts
WHERE policy = '';
