-- A random identity, so that nodes that share a store can check whether they share records.
CREATE TABLE catraca.identity (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    id TEXT NOT NULL
);
