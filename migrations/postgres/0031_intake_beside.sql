-- A slot says up to which of its calls are worked in. Here calls go in the transaction that works them in and the column
-- stays zero; the embedded engine keeps them in a file of their own, of which it cannot do that. Undone by dropping the
-- column.

ALTER TABLE run_slots ADD COLUMN worked_in BIGINT NOT NULL DEFAULT 0;

-- rollback:
-- ALTER TABLE run_slots DROP COLUMN worked_in;
