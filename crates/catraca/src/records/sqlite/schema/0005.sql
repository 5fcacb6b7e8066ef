-- Policy resets: counters, blocks and debts from before `epoch` no longer count. `swept` is the last
-- subject whose block and debt were examined; null when all were.
CREATE TABLE resets (
    policy TEXT PRIMARY KEY,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    by     TEXT,
    why    TEXT,
    swept  INTEGER
) STRICT, WITHOUT ROWID;

-- The last policy reset that the decision knew of; a row from before a later reset is not active.
ALTER TABLE blocks ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE debts ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
