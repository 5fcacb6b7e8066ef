-- Whether callers needed an API key when the server last started or loaded a catalog: a later start
-- without any key must be confirmed.
CREATE TABLE auth (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    keys_required INTEGER NOT NULL CHECK (keys_required IN (0, 1)),
    at            INTEGER NOT NULL
) STRICT;
