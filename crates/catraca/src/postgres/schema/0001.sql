-- The store, version 1: cells as opaque bytes, and the functions that lock and write them. Only the
-- program decodes bodies: nothing here reads one.

CREATE TABLE catraca_store.migrations (
    version bigint PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now()
);

-- One row per key, with all of its cells. The row lock is the lock of the key. The row may be
-- deleted after `expires` (seconds since the epoch), when all of its cells have been forgotten for
-- a while.
CREATE TABLE catraca_store.cells (
    key     bytea PRIMARY KEY,
    body    bytea NOT NULL DEFAULT '',
    expires bigint NOT NULL DEFAULT 0
) WITH (
    -- Free space in each page, so that most updates stay in it and touch no index (HOT updates).
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

ALTER TABLE catraca_store.cells ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX cells_expires ON catraca_store.cells (expires);

-- What nodes share besides cells, in one row: how many times lists, facts or modes have changed,
-- the identity of the records, and a random number that identifies the incarnation of the store.
CREATE TABLE catraca_store.state (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    changes bigint NOT NULL DEFAULT 0,
    life    bigint NOT NULL,
    records text
);

INSERT INTO catraca_store.state (life)
SELECT ('x' || left(md5(random()::text || clock_timestamp()::text), 16))::bit(64)::bigint;

-- Creates the missing rows of `make`; locks them and the existing rows of `look`, in the order of
-- their keys, so that transactions cannot deadlock; and reads the clock (microseconds) when all of
-- them are locked. With `skip`, rows that other transactions hold are left out. `missed` are keys
-- of `look` whose rows exist and are not locked: they were created meanwhile, or left out.
CREATE FUNCTION catraca_store.take(
    make bytea[], look bytea[], skip boolean,
    OUT now bigint, OUT keys bytea[], OUT bodies bytea[], OUT missed bytea[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO catraca_store.cells (key)
    SELECT k FROM unnest(make) AS k ORDER BY k
    ON CONFLICT DO NOTHING;
    IF skip THEN
        SELECT array_agg(held.key), array_agg(held.body) INTO keys, bodies FROM (
            SELECT c.key, c.body FROM catraca_store.cells AS c
            WHERE c.key = ANY (make || look) ORDER BY c.key FOR UPDATE SKIP LOCKED
        ) AS held;
    ELSE
        SELECT array_agg(held.key), array_agg(held.body) INTO keys, bodies FROM (
            SELECT c.key, c.body FROM catraca_store.cells AS c
            WHERE c.key = ANY (make || look) ORDER BY c.key FOR UPDATE
        ) AS held;
    END IF;
    IF cardinality(look) > 0 THEN
        SELECT array_agg(c.key) INTO missed FROM catraca_store.cells AS c
        WHERE c.key = ANY (look) AND c.key <> ALL (coalesce(keys, '{}'));
    END IF;
    now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
END
$$;

-- Writes the changed rows, and deletes those without cells. All of them are locked.
CREATE FUNCTION catraca_store.put(keys bytea[], bodies bytea[], ends bigint[], gone bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    k bytea;
BEGIN
    FOR i IN 1 .. cardinality(keys) LOOP
        UPDATE catraca_store.cells AS c SET body = bodies[i], expires = ends[i]
        WHERE c.key = keys[i];
    END LOOP;
    FOREACH k IN ARRAY gone LOOP
        DELETE FROM catraca_store.cells AS c WHERE c.key = k;
    END LOOP;
END
$$;

-- Deletes up to `most` expired rows that no transaction holds; returns how many.
CREATE FUNCTION catraca_store.sweep(most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    swept bigint;
BEGIN
    DELETE FROM catraca_store.cells WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM catraca_store.cells AS c
        WHERE c.expires < extract(epoch FROM clock_timestamp())
        ORDER BY c.expires LIMIT most FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS swept = ROW_COUNT;
    RETURN swept;
END
$$;
