-- List entries and facts of one namespace; an empty namespace means all. The tables are made anew,
-- because their keys change.
DROP VIEW ip_blocklist;
CREATE TABLE namespaced_lists (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    list      TEXT NOT NULL,
    attribute TEXT NOT NULL,
    value     TEXT NOT NULL,
    at        INTEGER NOT NULL,
    until     INTEGER,
    reason    TEXT,
    by        TEXT,
    namespace TEXT NOT NULL DEFAULT '',
    UNIQUE (list, attribute, value, namespace)
) STRICT;
INSERT INTO namespaced_lists (id, list, attribute, value, at, until, reason, by)
SELECT id, list, attribute, value, at, until, reason, by FROM lists ORDER BY id;
-- The highest id that was ever used stays: a start compares it with that of the snapshot.
DELETE FROM sqlite_sequence WHERE name = 'namespaced_lists';
INSERT INTO sqlite_sequence (name, seq)
SELECT 'namespaced_lists', seq FROM sqlite_sequence WHERE name = 'lists';
DROP TABLE lists;
ALTER TABLE namespaced_lists RENAME TO lists;

CREATE TABLE namespaced_facts (
    attribute TEXT NOT NULL,
    value     TEXT NOT NULL,
    name      TEXT NOT NULL,
    fact      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    by        TEXT,
    namespace TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (attribute, value, name, namespace)
) STRICT, WITHOUT ROWID;
INSERT INTO namespaced_facts (attribute, value, name, fact, at, by)
SELECT attribute, value, name, fact, at, by FROM facts;
DROP TABLE facts;
ALTER TABLE namespaced_facts RENAME TO facts;

-- Address ranges on the blocklist; without expires_at an entry is active until it is removed.
CREATE VIEW ip_blocklist AS
SELECT printf('00000000-0000-8000-8000-%012x', id) AS id,
       value AS ip_address,
       reason,
       strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch')
           || printf('.%03dZ', at / 1000 % 1000) AS blocked_at,
       strftime('%Y-%m-%dT%H:%M:%S', until / 1000000, 'unixepoch')
           || printf('.%03dZ', until / 1000 % 1000) AS expires_at,
       by,
       nullif(namespace, '') AS namespace
FROM lists
WHERE list = 'blocklist' AND attribute = '';
