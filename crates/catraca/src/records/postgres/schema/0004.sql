-- Policy resets: counters, blocks and debts from before `epoch` no longer count. `swept` is the last
-- subject whose block and debt were examined; null when all were.
CREATE TABLE catraca.resets (
    policy text PRIMARY KEY,
    epoch  bigint NOT NULL,
    at     bigint NOT NULL,
    by     text,
    why    text,
    swept  bigint
);

-- The last policy reset that the decision knew of; a row from before a later reset is not active.
ALTER TABLE catraca.blocks ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.debts ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
