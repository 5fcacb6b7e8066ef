-- Since when a policy counts anew for everybody, by whose order and why. `swept` is the
-- last subject from before it whose block and debt were looked at; null when all were.
CREATE TABLE resets (
    policy TEXT PRIMARY KEY,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    by     TEXT,
    why    TEXT,
    swept  INTEGER
) STRICT, WITHOUT ROWID;

-- Since when the policy counted when this was written; what is older than the reset is over.
ALTER TABLE blocks ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE debts ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
