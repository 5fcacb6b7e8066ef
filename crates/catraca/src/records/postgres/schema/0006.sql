-- Whether callers needed a key when a node last started or took a catalog: a later start without
-- any key must be meant.
CREATE TABLE catraca.auth (
    one           BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    keys_required BOOLEAN NOT NULL,
    at            BIGINT NOT NULL
);
