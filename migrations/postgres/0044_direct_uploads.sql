-- Makes it possible that clients plan uploads by hash and send them one by one, to the bucket or through the service.
-- Undone by dropping what is added here; planned uploads that are not committed have to be sent anew.

-- Tickets of clients name what they are for. The service's own, for files it receives in other calls, have none of this.
ALTER TABLE upload_tickets ADD COLUMN run_id BIGINT;
-- The client of the run that sends it, when the client has a token.
ALTER TABLE upload_tickets ADD COLUMN slot_id BIGINT;
ALTER TABLE upload_tickets ADD COLUMN kind TEXT COLLATE "C" CHECK (kind IN ('trace', 'attachment', 'report', 'import'));
ALTER TABLE upload_tickets ADD COLUMN sha256 BYTEA;
ALTER TABLE upload_tickets ADD COLUMN size BIGINT;
ALTER TABLE upload_tickets ADD COLUMN name TEXT COLLATE "C";
ALTER TABLE upload_tickets ADD COLUMN content_type TEXT COLLATE "C";
-- Whether clients write the object themselves: its bytes are nothing but a claim then.
ALTER TABLE upload_tickets ADD COLUMN is_direct SMALLINT;
ALTER TABLE upload_tickets ADD COLUMN state TEXT COLLATE "C" CHECK (state IN ('open', 'received', 'verified', 'wrong_size', 'wrong_hash', 'stored', 'revoked'));
-- A copy of the bytes that clients cannot write to and whose hash was checked.
ALTER TABLE upload_tickets ADD COLUMN verified_key TEXT COLLATE "C";
-- Until when bytes are accepted; the row and its object stay until expires_at.
ALTER TABLE upload_tickets ADD COLUMN usable_until BIGINT;
CREATE INDEX upload_tickets_of_run ON upload_tickets (project_id, run_id) WHERE state IS NOT NULL;

-- rollback:
-- DROP INDEX upload_tickets_of_run;
-- ALTER TABLE upload_tickets DROP COLUMN usable_until; ALTER TABLE upload_tickets DROP COLUMN verified_key;
-- ALTER TABLE upload_tickets DROP COLUMN state; ALTER TABLE upload_tickets DROP COLUMN is_direct;
-- ALTER TABLE upload_tickets DROP COLUMN content_type; ALTER TABLE upload_tickets DROP COLUMN name;
-- ALTER TABLE upload_tickets DROP COLUMN size; ALTER TABLE upload_tickets DROP COLUMN sha256;
-- ALTER TABLE upload_tickets DROP COLUMN kind; ALTER TABLE upload_tickets DROP COLUMN slot_id;
-- ALTER TABLE upload_tickets DROP COLUMN run_id;
