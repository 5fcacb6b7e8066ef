-- How many offences are remembered, and how long after the block's end. `reset` is when an operator
-- last had the key forgotten: a snapshot from before it must not bring its counters back.
ALTER TABLE catraca.blocks ADD COLUMN level bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.blocks ADD COLUMN forget bigint NOT NULL DEFAULT 0;
ALTER TABLE catraca.blocks ADD COLUMN reset bigint;
CREATE INDEX blocks_remembered ON catraca.blocks ((until + forget)) WHERE level > 0;
