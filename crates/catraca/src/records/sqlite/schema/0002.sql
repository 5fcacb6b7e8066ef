-- The fingerprint of the secret that the keys are made with, so that another one is noticed.
CREATE TABLE secrets (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
