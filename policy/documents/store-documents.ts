import { createHash } from 'node:crypto'
import { z } from 'zod'
import { InStoreCodes } from '../gs1/in-store-code.ts'
import { DeviceFacts } from '../devices.ts'
import { VersionNumber } from '../version.ts'
import { ProtectionPolicy } from '../store-policy.ts'
import { RIGHT_CLASSES, SECURITY_TAG_MODES } from '../vocabulary.ts'
import { ItemsHead } from './item-documents.ts'
import { KEY_STATES, KEY_USES } from './keys.ts'

/** Documents that the cloud signs for the agents of a store. Versions never decrease. */

const Seconds = z.int().min(0)
const Common = { aud: z.string(), iat: Seconds, exp: Seconds }
/** Versions compare as (epoch, ver). */
const Versioned = { epoch: z.int().min(0), ver: z.int().min(1) }

/** `keys+jwt`, signed by the root: which keys may sign what, for one account and mode. */
export const KeySetClaims = z.strictObject({
  ...Common,
  ...Versioned,
  /**
   * Time epoch. The number increases when the cloud revokes a key that signs times; absent before the first such
   * revocation. Agents accept only signed times of this epoch.
   */
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
/**
 * Maximum earlier key sets that an agent sends to a restored cloud, as proof of revocations. Each restore may lose one
 * key set.
 */
export const EARLIER_KEY_SETS_LIMIT = 4

const Verifier = z.strictObject({ salt: z.string(), key: z.string(), n: z.int(), r: z.int(), p: z.int() })
/** scrypt parameters with a salt and the derived key, base64url. */
export type Verifier = z.infer<typeof Verifier>

/**
 * An operator of the store. Each verifier is an HMAC with the store key (policy/operator-verifiers.ts). The policy
 * never contains the PIN.
 */
export const OperatorRecord = z.strictObject({
  operatorId: z.string(),
  name: z.string(),
  pin: Verifier.optional(),
  badge: Verifier,
  /** Verifier of a staff card. All cards of a store share one salt. */
  card: Verifier.optional(),
})
export type OperatorRecord = z.infer<typeof OperatorRecord>

/** Maximum active recalls of an account, so also of the products that the policy of a store names as recalled. */
export const RECALLS_LIMIT = 500
/** Name of a lot of a product. */
export function lotKey(gtin14: string, lot: string): string {
  return `${gtin14} ${lot}`
}
/** Maximum revoked tills of a store. */
export const REVOKED_TILLS_LIMIT = 1_000

/** Default and maximum number of days for which an agent keeps acknowledged rows. */
export const LEDGER_DAYS = 14

/** `policy+jwt`: all that an agent needs to decide offline. */
export const PolicyClaims = z.strictObject({
  ...Common,
  ...Versioned,
  iss: z.string(),
  /**
   * Minimum release of an agent. An older agent rejects the document before it validates the other fields. Absent: no
   * minimum.
   */
  minAgent: VersionNumber.optional(),
  securityTagMode: z.enum(SECURITY_TAG_MODES),
  policy: ProtectionPolicy.omit({ minAgent: true }),
  /** Shown on the agent's pages. */
  storeName: z.string(),
  devices: z.array(DeviceFacts.extend({ name: z.string().nullable() })).max(1_000),
  operators: z.array(OperatorRecord).max(500),
  /** Id of the store key of the verifiers (policy/operator-verifiers.ts). Absent without operators. */
  storeKey: z.string().length(16).optional(),
  /**
   * Set after a move of the receipt home. The new receipt home honours earlier receipts without staff only after it has
   * the deny list up to `denySeq`.
   */
  homeMove: z.strictObject({ atS: Seconds, denySeq: z.int().min(0) }).optional(),
  /** Days for which the agent keeps acknowledged rows of its ledger. Absent: 14. */
  ledgerDays: z.int().min(1).max(LEDGER_DAYS).optional(),
  /** Agents of the store with their public keys and their address in the store's network. */
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
  /**
   * GTIN-14 of the products of which a recall stops all goods in this store. A unit that was bought by its product code
   * has no item with a flag, so the agent compares its receipt with these. Absent: none.
   */
  recalledGtins: z.array(z.string().length(14)).max(RECALLS_LIMIT).optional(),
  /** Recalled lots in this store (`lotKey`). Absent: none. */
  recalledLots: z.array(z.string().max(40)).max(RECALLS_LIMIT).optional(),
  /** Layouts of the codes of the store's scales (policy/gs1/in-store-code.ts). Absent: the usual ones. */
  inStoreCodes: InStoreCodes.optional(),
  /** Tills whose sales since a time, s since 1970, release nothing (`revokeTill`). Absent: none. */
  revokedTills: z
    .array(z.strictObject({ tillId: z.string().max(64), since: z.int().min(0) }))
    .max(REVOKED_TILLS_LIMIT)
    .optional(),
})
export type PolicyClaims = z.infer<typeof PolicyClaims>

const Head = z.strictObject({ epoch: z.int(), ver: z.int(), hash: z.string() })

/** `fresh+jwt`: signed time and the newest document versions. An agent fetches the versions that it lacks. */
export const FreshClaims = z.strictObject({
  ...Common,
  /** Signed time, ms since 1970. */
  timeMs: z.int().min(0),
  timeEpoch: z.int().min(0),
  /**
   * Starts at 1. A restore sets this number to the time of the restore, ms since 1970, which exceeds every earlier
   * generation.
   */
  cloudGeneration: z.int().min(1),
  policy: Head,
  keys: Head,
  /** `ver` is the number of the last entry. */
  deny: z.strictObject({ epoch: z.int(), ver: z.int() }),
  /** Head of the item sequence (item-documents.ts). */
  items: ItemsHead,
})
export type FreshClaims = z.infer<typeof FreshClaims>

/** Deny list entry. The cloud deletes the entry when the denied token, receipt or right has expired. */
export const DenyEntry = z.discriminatedUnion('kind', [
  /** A revoked authorization. */
  z.strictObject({ kind: z.literal('nonce'), nonce: z.string(), until: Seconds }),
  /** Receipt of a cancelled purchase. */
  z.strictObject({ kind: z.literal('receipt'), cti: z.string(), until: Seconds }),
  /** Receipt rights that were used elsewhere or leased online. */
  z.strictObject({
    kind: z.literal('right'),
    cti: z.string(),
    rightClass: z.enum(RIGHT_CLASSES),
    ordinals: z.array(z.int().min(0)).min(1),
    until: Seconds,
    /**
     * Token for which the rights are leased. `agentId`: the agent that has the token, if a program requested it.
     * `ordinals[i]` is the right of step `i + 1`. That agent does not treat the rights as used; its own ledger shows
     * whether the token was used.
     */
    leasedTo: z.strictObject({ nonce: z.string(), agentId: z.string().optional() }).optional(),
    /** The lease has ended without a use of these rights. */
    ended: z.literal(true).optional(),
  }),
  /** Units of a receipt that a recall stops, because their line states the lot, expiry or serial that it names. */
  z.strictObject({
    kind: z.literal('recall'),
    cti: z.string(),
    ordinals: z.array(z.int().min(0)).min(1),
    until: Seconds,
    /** No recall stops these units any more. */
    ended: z.literal(true).optional(),
  }),
  /** Goods of a till's sale came back: no tag passes any more for its pieces (`passByProduct`). */
  z.strictObject({ kind: z.literal('pieces'), cti: z.string(), until: Seconds }),
])
export type DenyEntry = z.infer<typeof DenyEntry>

/** `deny+jwt`: a page of the deny list. */
export const DenyClaims = z.strictObject({
  ...Common,
  epoch: z.int().min(0),
  /** Number of the last entry; 0 if the list is empty. */
  ver: z.int().min(0),
  /** Number of the last entry before the page; 0 for the first page. */
  after: z.int().min(0),
  entries: z.array(DenyEntry).max(500),
})
export type DenyClaims = z.infer<typeof DenyClaims>

/** `time+jwt`: signed time for a time request. `aud` is the nonce of the request, so a replay is rejected. */
export const TimeClaims = z.strictObject({ ...Common, timeMs: z.int().min(0), timeEpoch: z.int().min(0) })
export type TimeClaims = z.infer<typeof TimeClaims>

/** Hash of a document without its times. The hash stays the same when the cloud signs the version again. */
export function contentHash(claims: { iat: number; exp: number }): string {
  const { iat: _iat, exp: _exp, ...content } = claims
  return createHash('sha256').update(JSON.stringify(content)).digest('base64url')
}

export interface DocumentVersion {
  epoch: number
  ver: number
}

/** Negative if `a` is older than `b`. */
export function compareVersions(a: DocumentVersion, b: DocumentVersion): number {
  return a.epoch - b.epoch || a.ver - b.ver
}
