-- Which records these are, so that nodes that share a store can tell whether they share records.
CREATE TABLE identity (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
