/** Users of the console, their sessions and failed sign-ins. */
export const USERS: readonly string[] = [
  `CREATE TABLE console_user (
    user_id text PRIMARY KEY, account_id text NOT NULL REFERENCES account (account_id), email text NOT NULL,
    name text NOT NULL, role text NOT NULL, store_ids text, sandbox_only bigint NOT NULL, mode text NOT NULL,
    password_hash text, invited_by text NOT NULL, created_ms bigint NOT NULL, accepted_ms bigint,
    last_sign_in_ms bigint, invitation_hash text UNIQUE, invitation_expires_ms bigint,
    totp_secret text, totp_step bigint NOT NULL, recovery_codes text NOT NULL, UNIQUE (account_id, email))`,
  `CREATE INDEX console_user_by_email ON console_user (email)`,
  `CREATE TABLE user_session (
    session_id text PRIMARY KEY, token_hash text NOT NULL UNIQUE, user_id text NOT NULL REFERENCES console_user (user_id),
    mode text NOT NULL, state text NOT NULL, second_factor bigint NOT NULL, user_agent text NOT NULL,
    created_ms bigint NOT NULL, seen_ms bigint NOT NULL, expires_ms bigint NOT NULL,
    totp_next text, totp_next_expires_ms bigint, passkey_challenge text, passkey_challenge_expires_ms bigint)`,
  `CREATE INDEX user_session_by_user ON user_session (user_id, session_id)`,
  `CREATE INDEX user_session_by_expiry ON user_session (expires_ms)`,
  `CREATE TABLE user_identity (
    issuer text NOT NULL, subject text NOT NULL, created_ms bigint NOT NULL,
    user_id text NOT NULL REFERENCES console_user (user_id) ON DELETE CASCADE,
    PRIMARY KEY (issuer, subject, user_id))`,
  `CREATE INDEX user_identity_by_user ON user_identity (user_id)`,
  `CREATE TABLE user_passkey (
    passkey_id text PRIMARY KEY, credential_id text NOT NULL UNIQUE,
    user_id text NOT NULL REFERENCES console_user (user_id), name text NOT NULL, public_key text NOT NULL,
    counter bigint NOT NULL, transports text NOT NULL, backed_up bigint NOT NULL, created_ms bigint NOT NULL,
    last_used_ms bigint)`,
  `CREATE INDEX user_passkey_by_user ON user_passkey (user_id, passkey_id)`,
  `CREATE TABLE used_challenge (challenge text PRIMARY KEY, expires_ms bigint NOT NULL)`,
  `CREATE INDEX used_challenge_by_expiry ON used_challenge (expires_ms)`,
  `CREATE TABLE sign_in_failure (subject text PRIMARY KEY, count bigint NOT NULL, since_ms bigint NOT NULL)`,
  `CREATE INDEX sign_in_failure_by_age ON sign_in_failure (since_ms)`,
]
