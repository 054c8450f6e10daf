/** Signing keys, sealed secrets and the newest signed document of each kind. */
export const AUTHORITY: readonly string[] = [
  `CREATE TABLE signing_key (
    kid text PRIMARY KEY, iss text NOT NULL, key_use text NOT NULL, x text NOT NULL, sealed text NOT NULL, state text NOT NULL,
    created_ms bigint NOT NULL, changed_ms bigint NOT NULL DEFAULT 0)`,
  `CREATE UNIQUE INDEX one_active_key ON signing_key (iss, key_use) WHERE state = 'active'`,
  `CREATE UNIQUE INDEX one_next_key ON signing_key (iss, key_use) WHERE state = 'next'`,
  `CREATE TABLE sealed_secret (name text PRIMARY KEY, sealed text NOT NULL)`,
  `CREATE TABLE signed_document (
    kind text NOT NULL, aud text NOT NULL, epoch bigint NOT NULL, ver bigint NOT NULL, hash text NOT NULL, jws text NOT NULL,
    iat bigint NOT NULL, PRIMARY KEY (kind, aud))`,
]
