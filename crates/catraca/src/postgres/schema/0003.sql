-- The store, version 3: what nodes tell each other. The program writes and reads states and bodies:
-- nothing here interprets them.

CREATE TABLE catraca_store.nodes (
    id    text PRIMARY KEY,
    state text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE catraca_store.notices (
    version bigint PRIMARY KEY,
    body    bytea NOT NULL
);

-- The version of the last notice.
ALTER TABLE catraca_store.state ADD COLUMN notices bigint NOT NULL DEFAULT 0;

-- The lines of `message` are: the id of the node, its state, the ids of nodes that are gone, the
-- version after which notices are wanted, how many at most, and new notices in hexadecimal. Ids and
-- notices are separated by spaces.
CREATE FUNCTION catraca_store.exchange(
    message text,
    OUT stored bigint, OUT ids text[], OUT states text[],
    OUT versions bigint[], OUT bodies bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    lines text[] := string_to_array(message, E'\n');
    added text[] := string_to_array(nullif(lines[6], ''), ' ');
    last  bigint;
BEGIN
    INSERT INTO catraca_store.nodes AS n (id, state) VALUES (lines[1], lines[2])
    ON CONFLICT (id) DO UPDATE SET state = excluded.state;
    DELETE FROM catraca_store.nodes
    WHERE id = ANY (string_to_array(nullif(lines[3], ''), ' '));
    IF cardinality(added) > 0 THEN
        -- The row lock lasts until the commit, so that versions become visible in their order.
        UPDATE catraca_store.state SET notices = notices + cardinality(added)
        RETURNING notices INTO last;
        INSERT INTO catraca_store.notices (version, body)
        SELECT last - cardinality(added) + a.number, decode(a.body, 'hex')
        FROM unnest(added) WITH ORDINALITY AS a (body, number);
    END IF;
    SELECT coalesce(max(version) - min(version) + 1, 0) INTO stored FROM catraca_store.notices;
    SELECT array_agg(n.id), array_agg(n.state) INTO ids, states FROM catraca_store.nodes AS n;
    SELECT array_agg(page.version ORDER BY page.version),
           array_agg(page.body ORDER BY page.version) INTO versions, bodies
    FROM (
        SELECT version, body FROM catraca_store.notices
        WHERE version > lines[4]::bigint ORDER BY version LIMIT lines[5]::bigint
    ) AS page;
END
$$;

-- Deletes the oldest notices, so that `keep` are left, and returns them.
CREATE FUNCTION catraca_store.trim_notices(keep text, OUT bodies bytea[]) LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM catraca_store.notices
        WHERE version <= (SELECT notices FROM catraca_store.state) - keep::bigint
        RETURNING body
    )
    SELECT array_agg(body) INTO bodies FROM gone;
END
$$;
