-- Since when a policy counts anew for everybody, by whose order and why. `swept` is the
-- last subject from before it whose block and debt were looked at; null when all were.
CREATE TABLE catraca.resets (
    policy text PRIMARY KEY,
    epoch  bigint NOT NULL,
    at     bigint NOT NULL,
    by     text,
    why    text,
    swept  bigint
);

-- Since when the policy counted when this was written; what is older than the reset is over.
ALTER TABLE catraca.blocks ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.debts ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
