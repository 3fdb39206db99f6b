-- Keeps the evidence of a call with it until it is worked into its run, and makes a pack of it then; undone by dropping the
-- column. Before the undo nothing may wait (run_intake is empty), or evidence that was acknowledged is lost.

ALTER TABLE run_intake ADD COLUMN evidence BLOB;

-- rollback:
-- ALTER TABLE run_intake DROP COLUMN evidence;
