-- Makes it possible to repeat a request under its Idempotency-Key without repeating its effect; undone by dropping the keys.

CREATE TABLE idempotency_keys (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done')),
    -- Of the whole request; null until it is answered, as are the next two.
    body_hash BYTEA,
    status SMALLINT,
    response TEXT,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- rollback:
-- DROP TABLE idempotency_keys;
