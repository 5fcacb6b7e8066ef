-- How many offences are remembered, and how long after the block's end. `reset` is when an operator
-- last had the key forgotten: a snapshot from before it must not bring its counters back.
ALTER TABLE blocks ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blocks ADD COLUMN forget INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blocks ADD COLUMN reset INTEGER;
CREATE INDEX blocks_remembered ON blocks (until + forget) WHERE level > 0;
