-- Makes accounts possible: users, access, keys, sessions, limits and the audit log; undone by dropping them.

CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    username TEXT NOT NULL,
    username_key TEXT NOT NULL,
    -- A PHC string; empty for accounts that only sign in through a provider.
    password TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('administrator', 'reporter', 'user')),
    name TEXT,
    email TEXT,
    email_source TEXT CHECK (email_source IN ('self', 'admin', 'verified', 'provider', 'unverified')),
    -- Set only for an address we may trust: one account per trusted address.
    trusted_email_key TEXT,
    email_verified_at INTEGER,
    avatar TEXT,
    oauth_provider TEXT,
    oauth_id TEXT,
    session_epoch INTEGER NOT NULL,
    disabled_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX users_username ON users (username_key);
CREATE UNIQUE INDEX users_email ON users (trusted_email_key) WHERE trusted_email_key IS NOT NULL;
CREATE UNIQUE INDEX users_oauth ON users (oauth_provider, oauth_id) WHERE oauth_id IS NOT NULL;
CREATE INDEX users_by_role ON users (role) WHERE disabled_at IS NULL;

CREATE TABLE project_assignments (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    -- Null: all projects, later ones included.
    project_id INTEGER,
    created_by INTEGER,
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX project_assignments_one ON project_assignments (user_id, project_id) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX project_assignments_all ON project_assignments (user_id) WHERE project_id IS NULL;
CREATE INDEX project_assignments_of_project ON project_assignments (project_id, user_id);

CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL,
    key_prefix TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('full', 'ingest', 'read', 'metrics')),
    project_ids TEXT,
    parent_key_id INTEGER,
    created_by INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    last_used_ip BLOB,
    expires_at INTEGER,
    revoked_at INTEGER
);
CREATE UNIQUE INDEX api_keys_hash ON api_keys (key_hash);
CREATE INDEX api_keys_of_user ON api_keys (user_id, id);
CREATE INDEX api_keys_of_parent ON api_keys (parent_key_id) WHERE parent_key_id IS NOT NULL;

CREATE TABLE sessions (
    sid_hash BLOB PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    epoch INTEGER NOT NULL,
    auth_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    method TEXT NOT NULL,
    ip_hash BLOB,
    user_agent TEXT
) WITHOUT ROWID;
CREATE INDEX sessions_of_user ON sessions (user_id, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE account_tokens (
    token_hash BLOB PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    purpose TEXT NOT NULL CHECK (purpose IN ('reset', 'verify', 'invite')),
    email TEXT,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX account_tokens_of_user ON account_tokens (user_id, purpose);
CREATE INDEX account_tokens_by_expiry ON account_tokens (expires_at);

CREATE TABLE invitations (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    scope TEXT NOT NULL,
    invited_by INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    accepted_at INTEGER,
    revoked_at INTEGER
);
CREATE INDEX invitations_by_time ON invitations (created_at, id);
CREATE INDEX invitations_of_user ON invitations (user_id);

CREATE TABLE used_states (
    state_hash BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX used_states_by_expiry ON used_states (expires_at);

CREATE TABLE rate_limits (
    k BLOB PRIMARY KEY,
    n INTEGER NOT NULL,
    win_end INTEGER NOT NULL,
    inflight INTEGER NOT NULL,
    inflight_end INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rate_limits_by_end ON rate_limits (win_end);

CREATE TABLE audit_events (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor_user INTEGER,
    actor_key INTEGER,
    ip_hash BLOB,
    action TEXT NOT NULL,
    target_type TEXT,
    target_id INTEGER,
    project_id INTEGER,
    detail TEXT NOT NULL
);
CREATE INDEX audit_events_by_time ON audit_events (at, id);
CREATE INDEX audit_events_by_action ON audit_events (action, at, id);
CREATE INDEX audit_events_by_target ON audit_events (target_type, target_id, id);
CREATE INDEX audit_events_by_actor ON audit_events (actor_user, at, id);
CREATE INDEX audit_events_by_project ON audit_events (project_id, at, id);

-- rollback:
-- DROP TABLE audit_events; DROP TABLE rate_limits; DROP TABLE used_states; DROP TABLE invitations;
-- DROP TABLE account_tokens; DROP TABLE sessions; DROP TABLE api_keys; DROP TABLE project_assignments; DROP TABLE users;
