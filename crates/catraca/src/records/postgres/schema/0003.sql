-- Locks and slots: confirmed slots, leases with durability `fsync`, the fences and lease times that
-- each namespace may have granted, and the highest versions of names with monotonic versions. Lease
-- ids are stored as digests only.
CREATE TABLE catraca.leases (
    namespace   TEXT NOT NULL,
    lease       BYTEA NOT NULL,
    tenant      TEXT,
    kind        TEXT NOT NULL,
    names       TEXT NOT NULL,
    starts      BIGINT,
    ends        BIGINT,
    before      BIGINT,
    after       BIGINT,
    fence       BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    label       TEXT,
    meta        TEXT,
    acquired    BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    hold_until  BIGINT NOT NULL,
    ttl         BIGINT NOT NULL,
    state       TEXT NOT NULL,
    request     BYTEA,
    PRIMARY KEY (namespace, lease)
);

CREATE TABLE catraca.fences (
    namespace   TEXT PRIMARY KEY,
    ceiling     BIGINT NOT NULL,
    longest     BIGINT NOT NULL,
    remaining   BIGINT
);

CREATE TABLE catraca.versions (
    namespace   TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     BIGINT NOT NULL,
    until       BIGINT NOT NULL,
    PRIMARY KEY (namespace, name)
);
