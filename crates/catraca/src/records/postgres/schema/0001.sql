-- The records, version 1. Times are microseconds since the Unix epoch; 2^53 - 1 means forever.
-- Values of private attributes are pseudonyms in every column.

CREATE TABLE catraca.migrations (
    version bigint PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now()
);

-- The last batch of each writer, so that a batch whose commit got no response is not written twice.
CREATE TABLE catraca.writers (
    id    text PRIMARY KEY,
    batch bigint NOT NULL,
    at    timestamptz NOT NULL DEFAULT now()
);

-- The fingerprint of the secret that keys are derived from, so that another one is detected.
CREATE TABLE catraca.secrets (
    id text PRIMARY KEY
);

-- The keys of blocks and debts: one row per (namespace, policy, parts).
CREATE TABLE catraca.subjects (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        bytea NOT NULL UNIQUE,
    namespace  text NOT NULL,
    policy     text NOT NULL,
    identifier text NOT NULL,
    parts      text NOT NULL
);

CREATE TABLE catraca.parts (
    attribute text NOT NULL,
    value     text NOT NULL,
    subject   bigint NOT NULL REFERENCES catraca.subjects (id) ON DELETE CASCADE,
    PRIMARY KEY (attribute, value, subject)
);
CREATE INDEX parts_by_subject ON catraca.parts (subject);

-- The newest state of each block; `key` is repeated here, so that a start reads one table. `freed`
-- is when an operator last released or reset it.
CREATE TABLE catraca.blocks (
    subject bigint PRIMARY KEY REFERENCES catraca.subjects (id) ON DELETE CASCADE,
    key     bytea NOT NULL UNIQUE,
    since   bigint NOT NULL,
    until   bigint NOT NULL,
    touched bigint NOT NULL,
    freed   bigint,
    shadow  boolean NOT NULL DEFAULT false,
    origin  text NOT NULL,
    reason  text,
    status  bigint,
    message text,
    by      text
);
CREATE INDEX blocks_by_start ON catraca.blocks (since, subject);
CREATE INDEX blocks_by_end ON catraca.blocks (until);
CREATE INDEX blocks_freed ON catraca.blocks (freed) WHERE freed IS NOT NULL;

-- The history of every block; rows are only added.
CREATE TABLE catraca.history (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject bigint NOT NULL REFERENCES catraca.subjects (id) ON DELETE CASCADE,
    at      bigint NOT NULL,
    act     text NOT NULL,
    until   bigint NOT NULL,
    shadow  boolean NOT NULL DEFAULT false,
    origin  text NOT NULL,
    reason  text,
    by      text
);
CREATE INDEX history_by_subject ON catraca.history (subject, id);
CREATE INDEX history_by_time ON catraca.history (at);

CREATE TABLE catraca.debts (
    subject bigint PRIMARY KEY REFERENCES catraca.subjects (id) ON DELETE CASCADE,
    at      bigint NOT NULL,
    balance bigint NOT NULL,
    size    bigint NOT NULL,
    tokens  bigint NOT NULL,
    period  bigint NOT NULL
);

-- The attribute of an address range is empty.
CREATE TABLE catraca.lists (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    list      text NOT NULL,
    attribute text NOT NULL,
    value     text NOT NULL,
    at        bigint NOT NULL,
    until     bigint,
    reason    text,
    by        text,
    UNIQUE (list, attribute, value)
);

CREATE TABLE catraca.facts (
    attribute text NOT NULL,
    value     text NOT NULL,
    name      text NOT NULL,
    fact      text NOT NULL,
    at        bigint NOT NULL,
    by        text,
    PRIMARY KEY (attribute, value, name)
);

CREATE TABLE catraca.modes (
    policy text PRIMARY KEY,
    mode   text NOT NULL,
    at     bigint NOT NULL,
    by     text
);

CREATE TABLE catraca.revisions (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    revision text NOT NULL,
    policies bigint,
    by       text
);

-- `about` finds the actions about one attribute's value, `subject` those about one subject.
CREATE TABLE catraca.audit (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    by      text NOT NULL,
    act     text NOT NULL,
    target  text NOT NULL,
    why     text,
    before  text,
    after   text,
    about   text,
    subject bigint
);
CREATE INDEX audit_by_time ON catraca.audit (at);
CREATE INDEX audit_by_about ON catraca.audit (about) WHERE about IS NOT NULL;
CREATE INDEX audit_by_subject ON catraca.audit (subject) WHERE subject IS NOT NULL;

-- Decisions by minute. An empty policy counts whole decisions of the gate, one per decision.
CREATE TABLE catraca.counts (
    minute    bigint NOT NULL,
    namespace text NOT NULL,
    action    text NOT NULL,
    policy    text NOT NULL,
    allowed   bigint NOT NULL,
    denied    bigint NOT NULL,
    blocked   bigint NOT NULL,
    PRIMARY KEY (minute, namespace, action, policy)
);

-- A time as text; forever is the end of the year 9999.
CREATE FUNCTION catraca.instant(micros bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN micros = 9007199254740991 THEN timestamptz '9999-12-31 23:59:59.999Z'
                ELSE timestamptz 'epoch' + micros / 1000 * interval '1 millisecond' END
$$;

-- One row per block event.
CREATE VIEW catraca.buyer_rate_limits AS
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
       h.by
FROM catraca.history AS h
JOIN catraca.subjects AS s ON s.id = h.subject
WHERE h.act IN ('started', 'extended') AND NOT h.shadow;

-- Address ranges on the blocklist; without expires_at an entry is active until it is removed.
CREATE VIEW catraca.ip_blocklist AS
SELECT ('00000000-0000-8000-8000-' || lpad(to_hex(id), 12, '0'))::uuid AS id,
       value AS ip_address,
       reason,
       catraca.instant(at) AS blocked_at,
       catraca.instant(until) AS expires_at,
       by
FROM catraca.lists
WHERE list = 'blocklist' AND attribute = '';

-- Active blocks.
CREATE VIEW catraca.rate_limit_tracking AS
SELECT s.identifier AS blockedID,
       catraca.instant(b.until) AS unblockTime,
       b.reason,
       s.namespace AS site,
       s.policy
FROM catraca.blocks AS b
JOIN catraca.subjects AS s ON s.id = b.subject
WHERE NOT b.shadow AND b.until > (extract(epoch FROM now()) * 1000000)::bigint;

-- Attempts by minute and action; attempts = allowed + denied + blocked.
CREATE VIEW catraca.attempts_by_action AS
SELECT catraca.instant(minute * 60000000) AS minute,
       namespace,
       action,
       allowed + denied + blocked AS attempts,
       allowed,
       denied,
       blocked
FROM catraca.counts
WHERE policy = '';
