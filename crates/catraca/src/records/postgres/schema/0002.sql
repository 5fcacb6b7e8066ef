-- Which records these are, so that nodes that share a store can tell whether they share records.
CREATE TABLE catraca.identity (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    id TEXT NOT NULL
);
