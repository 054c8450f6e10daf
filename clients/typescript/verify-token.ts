import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTPayload } from 'jose'
import { REAL_PLATFORM, type ClientPlatform } from './platform.ts'

/** The claims of an authorization token; docs/reference/tokens.md describes them. */
interface TokenClaims extends JWTPayload {
  aud: string
  /** Nonce of the authorization. The device must accept each nonce only once. */
  jti: string
  act: string
  cnt: number
  exp: number
  iat: number
}

type TokenFault =
  | 'malformed'
  | 'not_for_this_device'
  | 'redeem_first'
  | 'expired'
  | 'bad_signature'
  | 'keys_unavailable'

/** A rejected token. The device must not move. Retry only after `keys_unavailable`. */
class TokenRefused extends Error {
  override name = 'TokenRefused'
  readonly code: TokenFault
  constructor(code: TokenFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export interface TokenVerifierOptions {
  /** Origin of the cloud, such as `https://untag.example`. */
  cloud: string
  /** Account and mode that issue the tokens (`iss`), such as `acc_….live`. */
  issuer: string
  /** Device that uses the tokens (`aud`). */
  deviceId: string
  platform?: Partial<Pick<ClientPlatform, 'fetch' | 'now'>>
}

/** Maximum length of a token, characters, and maximum lifetime, s. */
const MAX_LENGTH = 1_024
const MAX_LIFE = 600
/** Tolerance for a clock of the cloud that is ahead, s. */
const ISSUED_AHEAD = 5
/** Cache time of the published keys, ms. The verifier accepts a revoked key for at most this time. */
const KEYS_CACHED_MS = 60_000
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]{86}$/

/**
 * Verifies authorization tokens for a device without an agent that works offline (`supportsOfflineAuth`). The verifier checks the form, the signature by a
 * published key of the account, the device and the times. The verifier does not remember tokens. Store `jti` durably
 * before the device moves, and reject a `jti` that you have stored. Rejects with `TokenRefused`.
 *
 * @example
 * const verify = tokenVerifier({ cloud: 'https://untag.example', issuer, deviceId })
 * const { jti, act } = await verify(token)
 * console.log(act, jti)
 */
export function tokenVerifier({
  cloud,
  issuer,
  deviceId,
  platform = {},
}: TokenVerifierOptions): (token: string) => Promise<TokenClaims> {
  const { fetch, now } = { ...REAL_PLATFORM, ...platform }
  const keys = createRemoteJWKSet(new URL(`/.well-known/jwks/${encodeURIComponent(issuer)}.json`, cloud), {
    cacheMaxAge: KEYS_CACHED_MS,
    [customFetch]: (url, init) => fetch(url, init),
  })
  return async (token) => {
    if (token.length > MAX_LENGTH || !COMPACT.test(token)) throw new TokenRefused('malformed', 'this is no token')
    const nowMs = now()
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      algorithms: ['EdDSA'],
      typ: 'pauth+jwt',
      issuer,
      audience: deviceId,
      requiredClaims: ['iat', 'exp', 'jti', 'act', 'cnt', 'led'],
      currentDate: new Date(nowMs),
    }).catch((error: unknown) => {
      throw refusalOf(error)
    })
    assertUntagForm(payload, Object.keys(protectedHeader).length, nowMs / 1_000)
    return payload as TokenClaims
  }
}

/**
 * Checks what jose does not check. The token must have three header fields, one audience and a short lifetime. It must
 * not be issued in the future. Only tokens that the device itself claims are accepted.
 */
function assertUntagForm({ aud, led, iat = 0, exp = 0 }: JWTPayload, headers: number, now: number): void {
  if (headers !== 3 || exp - iat > MAX_LIFE || iat > now + ISSUED_AHEAD)
    throw new TokenRefused('malformed', 'the token is not of the form that the cloud issues')
  if (led === 'cloud')
    throw new TokenRefused(
      'redeem_first',
      'the device works online only: call redeemProtectionAuthorization before it moves, or set supportsOfflineAuth',
    )
  if (typeof aud !== 'string' || led !== 'device')
    throw new TokenRefused('not_for_this_device', 'only the agent of this device may use the token')
}

function refusalOf(cause: unknown): TokenRefused {
  const refusal = (code: TokenFault, message: string) => new TokenRefused(code, message, { cause })
  if (cause instanceof errors.JWTExpired) return refusal('expired', 'the token has expired: request a new one')
  if (cause instanceof errors.JWTClaimValidationFailed)
    return cause.claim === 'aud' || cause.claim === 'iss'
      ? refusal('not_for_this_device', 'the token is for another device or account')
      : refusal('malformed', cause.message)
  if (cause instanceof errors.JWSSignatureVerificationFailed || cause instanceof errors.JWKSNoMatchingKey)
    return refusal('bad_signature', 'no published key of the account signed the token')
  const isOfToken =
    cause instanceof errors.JWSInvalid ||
    cause instanceof errors.JWTInvalid ||
    cause instanceof errors.JOSEAlgNotAllowed ||
    cause instanceof errors.JOSENotSupported
  return isOfToken
    ? refusal('malformed', cause.message)
    : refusal('keys_unavailable', 'the published keys cannot be read: check the address of the cloud and the network')
}
