import { itemHash, signAuthorization, type AuthorizationClaims } from '../../policy/documents/authorization.ts'
import {
  keyId,
  keyRing,
  newKey,
  createSigner,
  type KeyRecord,
  type KeyRing,
  type KeyUse,
} from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'

/** Real authorization tokens for one device of one agent, with the keys to verify them. */
export interface TokenSource {
  readonly keys: KeyRing
  readonly device: string
  /** Trusted time at which the tokens are valid, seconds since 1970. */
  readonly now: number
  /** Creates this number of tokens, each with a new nonce. */
  make(count: number): string[]
}

/** Purposes of the other keys in the key set. An agent typically has two keys of each purpose. */
const OTHER_USES = ['token', 'receipt', 'receipt', 'policy', 'policy', 'freshness', 'freshness'] as const

const ISS = 'acc_01KANX6Y7C3V9Q2M8R5T4W6Z1B.live'
const DEVICE = 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const NOW = 1_795_000_000

export const LEDGER = { ledgerId: 'led_01KANX6Y7C3V9Q2M8R5T4W6Z1B', generation: 1 }

export function tokenSource(random: Randomness): TokenSource {
  const own = newKey(random)
  const record = (x: string, use: KeyUse): KeyRecord => ({
    kid: keyId(x),
    alg: 'EdDSA',
    x,
    use,
    iss: ISS,
    state: 'active',
  })
  const by = createSigner(own.x, own.secret)
  return {
    keys: keyRing([record(own.x, 'token'), ...OTHER_USES.map((use) => record(newKey(random).x, use))]),
    device: DEVICE,
    now: NOW,
    make: (count) =>
      Array.from({ length: count }, () =>
        signAuthorization(claims(Buffer.from(random.bytes(16)).toString('base64url')), by),
      ),
  }
}

function claims(jti: string): AuthorizationClaims {
  return {
    iss: ISS,
    aud: DEVICE,
    iat: NOW - 10,
    exp: NOW + 290,
    jti,
    led: `${LEDGER.ledgerId}.${LEDGER.generation}`,
    act: 'detach_hard_tag',
    cnt: 1,
    ith: itemHash(DEVICE, jti, 'epc', '3034007D00011C400000000B'),
    eid: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    rc: 1,
    pv: 12,
    kv: 3,
  }
}
