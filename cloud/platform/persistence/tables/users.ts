/** Users of the console and their sessions. Units: ../schema.ts. */

export interface UserRow {
  user_id: string
  account_id: string
  /** ASCII, with small letters. */
  email: string
  name: string
  role: string
  /** JSON list of the stores that the user may access; null: all stores of the account. */
  store_ids: string | null
  /** 1: the user may see sandbox data only. */
  sandbox_only: number
  /** Mode in which the next session starts. */
  mode: string
  /** Null until the user accepts the invitation. */
  password_hash: string | null
  /** Id of the user, or `command line`. */
  invited_by: string
  created_ms: number
  accepted_ms: number | null
  last_sign_in_ms: number | null
  /** Hash of the token of the open invitation; null: none is open. */
  invitation_hash: string | null
  invitation_expires_ms: number | null
  /** Sealed secret of the authenticator app; null: the user has no second factor. */
  totp_secret: string | null
  /** Number of the 30 s step of the last code. Codes of this step and of earlier ones are used. */
  totp_step: number
  /** JSON list with the hashes of the unused recovery codes. */
  recovery_codes: string
}

export interface UserSessionRow {
  session_id: string
  token_hash: string
  user_id: string
  mode: string
  /** `pending`: the password was right, and the second factor is missing. */
  state: 'active' | 'pending'
  second_factor: number
  /** Browser, as it names itself. */
  user_agent: string
  created_ms: number
  seen_ms: number
  expires_ms: number
  /** Sealed secret of a new authenticator app, which a code must confirm in this session; null: none was begun. */
  totp_next: string | null
  totp_next_expires_ms: number | null
  /** Challenge for a new passkey, which this session may register; null: none was begun. */
  passkey_challenge: string | null
  passkey_challenge_expires_ms: number | null
}

/** A person at an OpenID Connect provider who signs in as a user. One person may be users of several accounts. */
export interface UserIdentityRow {
  issuer: string
  subject: string
  user_id: string
  created_ms: number
}

/** A passkey: a key pair of which the cloud stores the public key. */
export interface UserPasskeyRow {
  passkey_id: string
  /** Id that the authenticator gave the key, base64url. */
  credential_id: string
  user_id: string
  name: string
  /** COSE key, base64url. */
  public_key: string
  /** Number of signatures, as the authenticator counts them; 0 if it does not count. */
  counter: number
  /** JSON list of the ways to reach the authenticator. */
  transports: string
  /** 1: the key is copied to other devices of the user. */
  backed_up: number
  created_ms: number
  last_used_ms: number | null
}

/** The challenge of a sign-in with a passkey. Each is valid once. */
export interface UsedChallengeRow {
  challenge: string
  expires_ms: number
}

/** Failed sign-ins of one user, e-mail address or client address. */
export interface SignInFailureRow {
  /** Hash of the user or address. */
  subject: string
  count: number
  /** Time of the first failure of this period. */
  since_ms: number
}
