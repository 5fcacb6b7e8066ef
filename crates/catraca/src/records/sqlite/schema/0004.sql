-- Locks and slots: confirmed slots, leases with durability `fsync`, the fences and lease times that
-- each namespace may have granted, and the highest versions of names with monotonic versions. Lease
-- ids are stored as digests only.
CREATE TABLE leases (
    namespace   TEXT NOT NULL,
    lease       BLOB NOT NULL,
    tenant      TEXT,
    kind        TEXT NOT NULL,
    names       TEXT NOT NULL,
    starts      INTEGER,
    ends        INTEGER,
    before      INTEGER,
    after       INTEGER,
    fence       INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    label       TEXT,
    meta        TEXT,
    acquired    INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    hold_until  INTEGER NOT NULL,
    ttl         INTEGER NOT NULL,
    state       TEXT NOT NULL,
    request     BLOB,
    PRIMARY KEY (namespace, lease)
) STRICT, WITHOUT ROWID;

CREATE TABLE fences (
    namespace   TEXT PRIMARY KEY,
    ceiling     INTEGER NOT NULL,
    longest     INTEGER NOT NULL,
    remaining   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    until       INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
