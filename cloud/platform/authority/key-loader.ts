import { assert } from '../../../policy/assert.ts'
import { keyRing, type KeyRecord, type KeyRing, type KeyUse, type Signer } from '../../../policy/documents/keys.ts'
import type { Platform } from '../../../policy/platform.ts'
import { type Tenant, tenantOf, type Mode } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import {
  raiseKeyGeneration,
  readKeyCounters,
  type KeyCounters,
  readLastSigned,
  type SigningClock,
} from './key-counters.ts'
import { advanceKeys, type RotatedUse } from './rotate-key.ts'
import type { Sealer } from './sealing.ts'
import { makeMissingKeys, readSigningKeys, type KeyMaker, type SigningKey } from './signing-keys.ts'
import { notFound } from '../foundation/failure.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../../policy/documents/store-documents.ts'

/** A signed key set of a tenant. */
interface SignedKeySet {
  readonly epoch: number
  readonly ver: number
  readonly hash: string
  readonly jws: string
}

/** Life of a key set, s. */
export const KEY_SET_LIFE = 400 * 86_400
const RENEW_BEFORE = 60 * 86_400
const RENEWED_AT_ONCE = 100
/**
 * Maximum clock difference between processes, s. If a key set is dated further in the future, a process with a fast
 * clock signed it. Agents reject such a key set until its issue time.
 */
const AHEAD = 60

/** Returns the stored key set. Signs the next version if the content changed or the stored key set expires soon. */
async function currentKeySet(
  db: Db,
  {
    tenant,
    records,
    counters: { keySetEpoch, timeEpoch },
  }: { tenant: Tenant; records: KeyRecord[]; counters: KeyCounters },
  { clock, root }: { clock: SigningClock; root: Signer },
): Promise<SignedKeySet> {
  const stored = await db
    .selectFrom('signed_document')
    .selectAll()
    .where('kind', '=', 'keys')
    .where('aud', '=', tenant)
    .executeTakeFirst()
  const iat = Math.floor(clock.noLaterMs() / 1_000)
  const content = {
    aud: tenant,
    epoch: Math.max(stored?.epoch ?? 0, keySetEpoch),
    ver: stored?.ver ?? 1,
    ...(timeEpoch > 0 && { timeEpoch }),
    keys: records,
  }
  const isSame = stored?.hash === contentHash({ ...content, iat: 0, exp: 0 })
  const isOfTheFuture = stored !== undefined && stored.iat - iat > AHEAD && clock.untrustedReason() === null
  if (stored && isSame && !isOfTheFuture && iat - stored.iat < KEY_SET_LIFE - RENEW_BEFORE) return stored
  const next = { ...content, ver: stored ? stored.ver + 1 : 1 }
  const { aud, ...fields } = next
  const claims: KeySetClaims = { aud, iat, exp: iat + KEY_SET_LIFE, ...fields }
  const row = {
    epoch: next.epoch,
    ver: next.ver,
    hash: contentHash(claims),
    jws: signDocument(DOCUMENT_KINDS.keys, claims, root),
    iat,
  }
  await db
    .insertInto('signed_document')
    .values({ kind: 'keys', aud: tenant, ...row })
    .onConflict((c) => c.columns(['kind', 'aud']).doUpdateSet(row))
    .execute()
  return row
}

/** At most 100 tenants whose key set expires soon or was signed by a fast clock. */
async function dueKeySets(db: Db, nowS: number): Promise<Tenant[]> {
  const due = await db
    .selectFrom('signed_document')
    .select('aud')
    .where('kind', '=', 'keys')
    .where((eb) => eb.or([eb('iat', '<=', nowS - KEY_SET_LIFE + RENEW_BEFORE), eb('iat', '>', nowS + AHEAD)]))
    .limit(RENEWED_AT_ONCE)
    .execute()
  return due.map(({ aud }) => aud as Tenant)
}

/** Issuer of the keys that serve every tenant. */
export const INSTALLATION = 'installation'
const RETIRED_SHOWN_MS = 30 * 86_400_000
const REVOKED_SHOWN_MS = KEY_SET_LIFE * 1_000

export interface TenantKeys {
  readonly token: Signer
  readonly receipt: Signer
  /** Keys with which documents of this tenant may be signed. */
  readonly ring: KeyRing
  /** Every receipt key that is not revoked. Receipts stay readable after their key has retired. */
  readonly reading: KeyRing
  readonly records: readonly KeyRecord[]
  /** Current time epoch. Agents ignore signed times of earlier epochs. */
  readonly timeEpoch: number
  readonly keySet: SignedKeySet
  /** Secret that derives receipt identities from purchases, and codes of loyalty cards from members. */
  readonly receiptSecret: Uint8Array
}

/** Keys of the installation as last loaded. */
export interface InstallationKeys {
  counters: KeyCounters
  lastSignedMs: number
  own: readonly SigningKey[]
  policy: Signer
  freshness: Signer
}

/** A tenant's keys and the keys of the installation, read in the same transaction. */
export interface LoadedKeys {
  shared: InstallationKeys
  keys: TenantKeys
}

interface LoaderParts {
  sealer: Sealer
  platform: Platform
  clock: SigningClock
  root: Signer
}

/** Reads keys from the database and creates missing ones. */
export class KeyLoader {
  readonly #parts: LoaderParts

  constructor(parts: LoaderParts) {
    this.#parts = parts
  }

  maker(): KeyMaker {
    const { sealer, platform } = this.#parts
    return { sealer, random: platform.random, nowMs: platform.clock.wall() }
  }

  async loadShared(db: Db): Promise<InstallationKeys> {
    await makeMissingKeys(db, INSTALLATION, ['policy', 'freshness'], this.maker())
    const own = await readSigningKeys(db, INSTALLATION, this.#parts.sealer)
    return {
      counters: await readKeyCounters(db),
      lastSignedMs: (await readLastSigned(db)) ?? 0,
      own,
      policy: activeSigner(own, 'policy'),
      freshness: activeSigner(own, 'freshness'),
    }
  }

  async load(db: Db, tenant: Tenant): Promise<LoadedKeys> {
    const { sealer, clock } = this.#parts
    const shared = await this.loadShared(db)
    await makeMissingKeys(db, tenant, ['token', 'receipt'], this.maker())
    const own = await readSigningKeys(db, tenant, sealer)
    const records = [...shared.own, ...own]
      .filter((key) => isPublished(key, clock.noLaterMs()))
      .map((key) => key.record)
    const readable = own.filter(({ record }) => record.use === 'receipt' && record.state !== 'revoked')
    const keys: TenantKeys = {
      token: activeSigner(own, 'token'),
      receipt: activeSigner(own, 'receipt'),
      ring: keyRing(records),
      reading: keyRing(readable.map(({ record }) => ({ ...record, state: 'retiring' }))),
      records,
      timeEpoch: shared.counters.timeEpoch,
      keySet: await currentKeySet(db, { tenant, records, counters: shared.counters }, this.#parts),
      receiptSecret: await this.#tenantSecret(db, `receipt-identity/${tenant}`),
    }
    return { shared, keys }
  }

  /** Retires and replaces keys that are due, and renews key sets before they expire. */
  async advance(db: Db): Promise<void> {
    const maker = this.maker()
    await advanceKeys(db, maker)
    const due = await dueKeySets(db, Math.floor(maker.nowMs / 1_000))
    for (const tenant of due) await this.load(db, tenant)
    if (due.length > 0) await raiseKeyGeneration(db)
  }

  async #tenantSecret(db: Db, name: string): Promise<Uint8Array> {
    const { sealer, platform } = this.#parts
    const stored = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', name).executeTakeFirst()
    if (stored) return sealer.open(stored.sealed, name)
    const secret = platform.random.bytes(32)
    await db
      .insertInto('sealed_secret')
      .values({ name, sealed: sealer.seal(secret, name) })
      .execute()
    return secret
  }
}

function activeSigner(keys: readonly SigningKey[], use: KeyUse): Signer {
  const key = keys.find((k) => k.record.use === use && k.record.state === 'active')
  assert(key?.signer, `there is no active ${use} key`)
  return key.signer
}

/** True if the key set lists the key: retired keys for 30 days, revoked keys for the life of a key set. */
function isPublished({ record, changedMs }: SigningKey, nowMs: number): boolean {
  const goneAfterMs =
    record.state === 'retired'
      ? RETIRED_SHOWN_MS
      : record.state === 'revoked'
        ? REVOKED_SHOWN_MS
        : Number.POSITIVE_INFINITY
  return nowMs - changedMs < goneAfterMs
}

interface KeyOwner {
  use: RotatedUse
  accountId: string
  /** If omitted, the keys of both modes rotate. */
  mode?: Mode | undefined
}

/**
 * Issuers of the keys to rotate. Policy and freshness keys belong to the installation. Other keys belong to the live
 * and the test tenant of the account. If `revoke` is a kid, returns only the issuer of this key. Throws 404 for an
 * unknown account or kid.
 */
export async function issuersOf(
  db: Db,
  { use, accountId, mode }: KeyOwner,
  revoke: boolean | string,
): Promise<string[]> {
  const issuers = use === 'policy' || use === 'freshness' ? [INSTALLATION] : await sidesOf(db, accountId, mode)
  if (typeof revoke !== 'string' || revoke === 'all') return issuers
  const key = await db.selectFrom('signing_key').select('iss').where('kid', '=', revoke).executeTakeFirst()
  const holding = issuers.filter((iss) => iss === key?.iss)
  if (holding.length === 0) throw notFound('signing key')
  return holding
}

async function sidesOf(db: Db, accountId: string, mode: Mode | undefined): Promise<string[]> {
  const account = await db
    .selectFrom('account')
    .select('account_id')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (!account) throw notFound('account')
  return (['live', 'test'] as const)
    .filter((side) => mode === undefined || side === mode)
    .map((side) => tenantOf(accountId, side))
}
