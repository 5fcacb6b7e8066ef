-- Whether callers needed an API key when a node last started or loaded a catalog: a later start
-- without any key must be confirmed.
CREATE TABLE catraca.auth (
    one           BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    keys_required BOOLEAN NOT NULL,
    at            BIGINT NOT NULL
);
