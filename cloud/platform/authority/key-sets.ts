import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import type { KeyRecord, Signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../../policy/documents/store-documents.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import type { KeyCounters, SigningClock } from './key-counters.ts'

/** A signed key set of a tenant. */
export interface SignedKeySet {
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
export async function currentKeySet(
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
export async function dueKeySets(db: Db, nowS: number): Promise<Tenant[]> {
  const due = await db
    .selectFrom('signed_document')
    .select('aud')
    .where('kind', '=', 'keys')
    .where((eb) => eb.or([eb('iat', '<=', nowS - KEY_SET_LIFE + RENEW_BEFORE), eb('iat', '>', nowS + AHEAD)]))
    .limit(RENEWED_AT_ONCE)
    .execute()
  return due.map(({ aud }) => aud as Tenant)
}
