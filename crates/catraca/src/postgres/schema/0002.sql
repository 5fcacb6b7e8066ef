-- The store, version 2: locks and slots. The rules are in the program; constraints here also
-- prevent that two leases have the same name or overlapping ranges. Instants and spans are in
-- microseconds.

-- One row per namespace. Its row lock is the lock of all leases of the namespace. `now` is the
-- latest instant, `fence` the last one, `kept` and `versions` the numbers of leases and versions.
CREATE TABLE catraca_store.lock_rooms (
    namespace bytea PRIMARY KEY,
    name      text NOT NULL,
    now       bigint NOT NULL DEFAULT 0,
    fence     bigint NOT NULL DEFAULT 0,
    kept      bigint NOT NULL DEFAULT 0,
    versions  bigint NOT NULL DEFAULT 0,
    -- The timeline of the server, and when a change of it was noticed: leases may be lost then.
    timeline  text NOT NULL,
    changed   bigint
) WITH (fillfactor = 50);

-- Leases, including ended ones for a while. `lease` is the digest of the proof; the proof itself is
-- not stored.
CREATE TABLE catraca_store.leases (
    namespace  bytea NOT NULL,
    lease      bytea NOT NULL,
    fence      bigint NOT NULL,
    tenant     text,
    kind       text NOT NULL,
    names      text[] NOT NULL,
    starts     bigint,
    ends       bigint,
    before     bigint,
    after      bigint,
    version    bigint NOT NULL,
    label      text,
    meta       text,
    acquired   bigint NOT NULL,
    expires    bigint NOT NULL,
    hold_until bigint NOT NULL,
    ttl        bigint NOT NULL,
    state      text NOT NULL,
    request    bytea,
    asked      bytea,
    due        bigint NOT NULL,
    cool_until bigint NOT NULL,
    PRIMARY KEY (namespace, lease)
) WITH (fillfactor = 70);

CREATE INDEX leases_live ON catraca_store.leases (namespace, fence)
    WHERE state IN ('held', 'confirmed');
CREATE INDEX leases_due ON catraca_store.leases (namespace, due);
CREATE INDEX leases_request ON catraca_store.leases (namespace, request)
    WHERE request IS NOT NULL;

-- Taken names, each by one lease.
CREATE TABLE catraca_store.lock_names (
    name      bytea PRIMARY KEY,
    namespace bytea NOT NULL,
    lease     bytea NOT NULL,
    FOREIGN KEY (namespace, lease) REFERENCES catraca_store.leases ON DELETE CASCADE
);

CREATE INDEX lock_names_lease ON catraca_store.lock_names (namespace, lease);

-- Taken ranges of time: a constraint prevents that two ranges of a calendar overlap, whichever
-- program writes them. It needs an extension that comes with PostgreSQL; where that is not
-- available, only the lock of the namespace prevents overlaps.
CREATE TABLE catraca_store.slots (
    calendar  bytea NOT NULL,
    during    int8range NOT NULL,
    namespace bytea NOT NULL,
    lease     bytea NOT NULL,
    FOREIGN KEY (namespace, lease) REFERENCES catraca_store.leases ON DELETE CASCADE
);

DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA catraca_store;
    ALTER TABLE catraca_store.slots ADD CONSTRAINT slots_apart
        EXCLUDE USING gist (calendar WITH =, during WITH &&);
EXCEPTION WHEN undefined_file OR insufficient_privilege OR feature_not_supported THEN
    RAISE WARNING 'without btree_gist, slots have no constraint of their own: %', SQLERRM;
    CREATE INDEX slots_during ON catraca_store.slots (calendar, during);
END
$$;

CREATE INDEX slots_lease ON catraca_store.slots (namespace, lease);

-- The highest version of each name whose versions must rise.
CREATE TABLE catraca_store.lock_versions (
    name      bytea PRIMARY KEY,
    namespace bytea NOT NULL,
    version   bigint NOT NULL,
    until     bigint NOT NULL,
    -- The grant that raised it, and the version before, in case the grant is undone.
    lease       bytea,
    was_version bigint,
    was_until   bigint
);

CREATE INDEX lock_versions_until ON catraca_store.lock_versions (namespace, until);

-- Counts of attempts by outcome. How many leases are active follows from the other counts.
CREATE TABLE catraca_store.lock_counts (
    namespace bytea NOT NULL,
    tenant    text,
    kind      text NOT NULL,
    success   bigint NOT NULL DEFAULT 0,
    conflicts bigint NOT NULL DEFAULT 0,
    released  bigint NOT NULL DEFAULT 0,
    expired   bigint NOT NULL DEFAULT 0,
    forced    bigint NOT NULL DEFAULT 0,
    undone    bigint NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX lock_counts_row
    ON catraca_store.lock_counts (namespace, coalesce(tenant, ''), (tenant IS NULL), kind);

-- The timeline of the server. It changes when a standby is promoted or a backup is restored. Where
-- the function is not permitted (some managed services), it is always the same.
CREATE FUNCTION catraca_store.timeline() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN OTHERS THEN
    RETURN '';
END
$$;

-- Locks the row of a namespace, which is created if it is missing, and reads the clock when it is
-- locked. `at` replaces the clock if it is given. Time never goes backwards. A change of the
-- timeline is stored.
CREATE FUNCTION catraca_store.lock_room(
    ns bytea, ns_name text, at bigint, OUT now bigint, OUT fence bigint, OUT kept bigint,
    OUT versions bigint, OUT changed bigint
) LANGUAGE plpgsql AS $$
DECLARE
    known text;
    line  text := catraca_store.timeline();
BEGIN
    INSERT INTO catraca_store.lock_rooms (namespace, name, timeline) VALUES (ns, ns_name, line)
    ON CONFLICT DO NOTHING;
    SELECT r.now, r.fence, r.kept, r.versions, r.changed, r.timeline
    INTO now, fence, kept, versions, changed, known
    FROM catraca_store.lock_rooms AS r WHERE r.namespace = ns FOR UPDATE;
    now := greatest(now,
        coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint));
    IF known <> line THEN
        changed := now;
        UPDATE catraca_store.lock_rooms AS r SET timeline = line, changed = lock_room.now
        WHERE r.namespace = ns;
    END IF;
END
$$;

-- Adds to the counts of a tenant and kind. A namespace has at most `rows_max` rows; further tenants
-- and kinds are counted in the row `others`.
CREATE FUNCTION catraca_store.lock_count(
    ns bytea, whose text, what text, rows_max bigint, others text, add bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM catraca_store.lock_counts AS c WHERE c.namespace = ns
            AND c.tenant IS NOT DISTINCT FROM whose AND c.kind = what)
        AND (SELECT count(*) FROM catraca_store.lock_counts AS c WHERE c.namespace = ns)
            >= rows_max THEN
        whose := others;
        what := others;
    END IF;
    INSERT INTO catraca_store.lock_counts AS c
        (namespace, tenant, kind, success, conflicts, released, expired, forced, undone)
    VALUES (ns, whose, what, add[1], add[2], add[3], add[4], add[5], add[6])
    ON CONFLICT (namespace, (coalesce(tenant, '')), ((tenant IS NULL)), kind) DO UPDATE SET
        success = c.success + excluded.success, conflicts = c.conflicts + excluded.conflicts,
        released = c.released + excluded.released, expired = c.expired + excluded.expired,
        forced = c.forced + excluded.forced, undone = c.undone + excluded.undone;
END
$$;
