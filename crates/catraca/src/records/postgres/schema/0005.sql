-- The number of offences that count for escalation, and how long after the end of the block they
-- do. `reset` is when an operator last reset the key: an older snapshot must not restore its counters.
ALTER TABLE catraca.blocks ADD COLUMN level bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.blocks ADD COLUMN forget bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.blocks ADD COLUMN reset bigint;
CREATE INDEX blocks_remembered ON catraca.blocks ((until + forget)) WHERE level > 0;
