-- The number of offences that count for escalation, and how long after the end of the block they
-- do. `reset` is when an operator last reset the key: an older snapshot must not restore its counters.
ALTER TABLE blocks ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blocks ADD COLUMN forget INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blocks ADD COLUMN reset INTEGER;
CREATE INDEX blocks_remembered ON blocks (until + forget) WHERE level > 0;
