-- A random identity, so that nodes that share a store can check whether they share records.
CREATE TABLE identity (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
