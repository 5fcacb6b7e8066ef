-- The store, version 1: cells as opaque bytes, and the verbs that reach them. What a cell means is
-- decided outside: nothing here reads a body.

CREATE TABLE catraca_store.migrations (
    version bigint PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now()
);

-- One row per key, with all that is known of it. Who locks the row has the key. The row may go when
-- `expires` (seconds since the epoch) is over: long after its loss could be noticed.
CREATE TABLE catraca_store.cells (
    key     bytea PRIMARY KEY,
    body    bytea NOT NULL DEFAULT '',
    expires bigint NOT NULL DEFAULT 0
) WITH (
    -- Room in each page, so that an update mostly stays there and touches no index.
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

ALTER TABLE catraca_store.cells ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX cells_expires ON catraca_store.cells (expires);

-- What nodes share beside cells: how often lists, facts or modes have changed, whose records these
-- are, and which life of the store this is.
CREATE TABLE catraca_store.state (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    changes bigint NOT NULL DEFAULT 0,
    life    bigint NOT NULL,
    records text
);

INSERT INTO catraca_store.state (life)
SELECT ('x' || left(md5(random()::text || clock_timestamp()::text), 16))::bit(64)::bigint;

-- Makes the rows of some keys, locks these and those of others that exist, in the order of keys,
-- and reads the clock when all of them are held. `missed` are keys to look at that somebody made
-- meanwhile, or with `skip` holds: they are not locked.
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

-- Writes what has changed in rows that are locked, and drops those in which nothing is left.
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

-- Drops some rows whose time is over and that nobody holds; says how many.
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
