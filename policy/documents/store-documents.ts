import { createHash } from 'node:crypto'
import { z } from 'zod'
import { DeviceFacts } from '../devices.ts'
import { VersionNumber } from '../version.ts'
import { ProtectionPolicy } from '../store-policy.ts'
import { RIGHT_CLASSES, SECURITY_TAG_MODES } from '../vocabulary.ts'
import { ItemsHead } from './item-documents.ts'
import { KEY_STATES, KEY_USES } from './keys.ts'

/** What the cloud tells the agents of a store, each signed and each with a version that never falls. */

const Seconds = z.int().min(0)
const Common = { aud: z.string(), iat: Seconds, exp: Seconds }
/** Versions compare as (epoch, ver). */
const Versioned = { epoch: z.int().min(0), ver: z.int().min(1) }

/** `keys+jwt`, signed by the root: which keys may sign what, for one account and mode. */
export const KeySetClaims = z.strictObject({
  ...Common,
  ...Versioned,
  /** Above every one before, since a key that signs times was revoked; left out: none was. Signed times count in this epoch alone. */
  timeEpoch: z.int().min(1).optional(),
  keys: z
    .array(
      z.strictObject({
        kid: z.string().length(8),
        alg: z.literal('EdDSA'),
        x: z.string().length(43),
        use: z.enum(KEY_USES),
        iss: z.string(),
        state: z.enum(KEY_STATES),
      }),
    )
    .max(500),
})
export type KeySetClaims = z.infer<typeof KeySetClaims>
/** Key sets of before that an agent brings to remind a restored cloud of what it had revoked: each restore may forget one more. */
export const EARLIER_KEY_SETS_LIMIT = 4

const Verifier = z.strictObject({ salt: z.string(), key: z.string(), n: z.int(), r: z.int(), p: z.int() })
/** scrypt parameters with a salt and the derived key, base64url. */
export type Verifier = z.infer<typeof Verifier>

/** An operator who may approve requests at the station. The policy contains verifiers under the store key, never the PIN. */
export const OperatorRecord = z.strictObject({
  operatorId: z.string(),
  name: z.string(),
  pin: Verifier.optional(),
  badge: Verifier,
  /** Of a card that a reader reads; all cards of a store have one salt. */
  card: Verifier.optional(),
})
export type OperatorRecord = z.infer<typeof OperatorRecord>

/** `policy+jwt`: what an agent needs to decide alone. */
export const PolicyClaims = z.strictObject({
  ...Common,
  ...Versioned,
  iss: z.string(),
  /** An agent of an older release refuses it, before it looks at anything else; left out: every release may take it. */
  minAgent: VersionNumber.optional(),
  securityTagMode: z.enum(SECURITY_TAG_MODES),
  policy: ProtectionPolicy.omit({ minAgent: true }),
  /** For the pages. */
  storeName: z.string(),
  devices: z.array(DeviceFacts.extend({ name: z.string().nullable() })).max(1_000),
  operators: z.array(OperatorRecord).max(500),
  /** Id of the store key of the operators' verifiers (policy/operator-verifiers.ts). Missing if there are no operators. */
  storeKey: z.string().length(16).optional(),
  /** The home has moved: it honours receipts from before only with the deny list up to here. */
  homeMove: z.strictObject({ atS: Seconds, denySeq: z.int().min(0) }).optional(),
  /** The agents of the store: with which keys they sign, and where they are reached over the store's network. */
  agents: z
    .array(
      z.strictObject({
        agentId: z.string(),
        keys: z.array(z.string().length(43)).max(2),
        url: z.string().max(200).nullable(),
      }),
    )
    .max(200)
    .optional(),
})
export type PolicyClaims = z.infer<typeof PolicyClaims>

const Head = z.strictObject({ epoch: z.int(), ver: z.int(), hash: z.string() })

/** `fresh+jwt`: the time, and which documents are the newest. An agent that hears it knows what it lacks. */
export const FreshClaims = z.strictObject({
  ...Common,
  /** Signed time, ms since 1970. */
  timeMs: z.int().min(0),
  timeEpoch: z.int().min(0),
  /** 1, and after a restore from a backup its time, ms since 1970: above every one before, whichever backup it was. */
  cloudGeneration: z.int().min(1),
  policy: Head,
  keys: Head,
  /** `ver` is the number of the last entry. */
  deny: z.strictObject({ epoch: z.int(), ver: z.int() }),
  /** The end of the items' sequence, and from where on it can be followed (item-documents.ts). */
  items: ItemsHead,
})
export type FreshClaims = z.infer<typeof FreshClaims>

/** What is no longer honoured; an entry lives until its subject has expired anyway. */
export const DenyEntry = z.discriminatedUnion('kind', [
  /** An authorization that was taken back. */
  z.strictObject({ kind: z.literal('nonce'), nonce: z.string(), until: Seconds }),
  /** A receipt whose purchase was cancelled. */
  z.strictObject({ kind: z.literal('receipt'), cti: z.string(), until: Seconds }),
  /** Rights of a receipt that were used up elsewhere, or leased online. */
  z.strictObject({
    kind: z.literal('right'),
    cti: z.string(),
    rightClass: z.enum(RIGHT_CLASSES),
    ordinals: z.array(z.int().min(0)).min(1),
    until: Seconds,
    /** The token that they are leased to, step by step, and whose it is to claim: that agent knows itself whether it has. */
    leasedTo: z.strictObject({ nonce: z.string(), agentId: z.string() }).optional(),
  }),
])
export type DenyEntry = z.infer<typeof DenyEntry>

/** `deny+jwt`: a page of the list, entries `from` to `ver` in order. */
export const DenyClaims = z.strictObject({
  ...Common,
  epoch: z.int().min(0),
  /** The number of the last entry; 0 while there is none. */
  ver: z.int().min(0),
  /** The page follows on this entry: 0 at the beginning. */
  after: z.int().min(0),
  entries: z.array(DenyEntry).max(500),
})
export type DenyClaims = z.infer<typeof DenyClaims>

/** The answer to a question for the time; `nonce` shows that it is not an old one. */
export const TimeClaims = z.strictObject({ ...Common, timeMs: z.int().min(0), timeEpoch: z.int().min(0) })
export type TimeClaims = z.infer<typeof TimeClaims>

/** What a document says apart from when it was signed: the same version re-signed has the same hash. */
export function contentHash(claims: { iat: number; exp: number }): string {
  const { iat: _iat, exp: _exp, ...content } = claims
  return createHash('sha256').update(JSON.stringify(content)).digest('base64url')
}

export interface DocumentVersion {
  epoch: number
  ver: number
}

/** Below 0 when `a` is older than `b`. */
export function compareVersions(a: DocumentVersion, b: DocumentVersion): number {
  return a.epoch - b.epoch || a.ver - b.ver
}
