-- Makes it possible to repeat a request under its Idempotency-Key without repeating its effect; undone by dropping the keys.

CREATE TABLE idempotency_keys (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done')),
    -- Of the whole request; null until it is answered, as are the next two.
    body_hash BLOB,
    status INTEGER,
    response TEXT,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- rollback:
-- DROP TABLE idempotency_keys;
