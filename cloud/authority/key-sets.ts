import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { KeyRecord, Signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../policy/documents/store-documents.ts'
import type { Tenant } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import type { KeyCounters } from './key-counters.ts'
import type { SigningClock } from './signing-clock.ts'

/** A tenant's key set as it was signed. */
export interface SignedKeySet {
  readonly epoch: number
  readonly ver: number
  readonly hash: string
  readonly jws: string
}

/** How long a key set is valid, s. */
export const KEY_SET_LIFE = 400 * 86_400
const RENEW_BEFORE = 60 * 86_400
const RENEWED_AT_ONCE = 100
/** Processes of one cloud differ by less: a key set further ahead was signed while a clock was, and no agent takes it until that time comes, s. */
const AHEAD = 60

/** The signed key set: the kept one while it says the same and lives long enough, else the next version. */
export async function currentKeySet(
  db: Db,
  { tenant, records, marks: { keySetEpoch, timeEpoch } }: { tenant: Tenant; records: KeyRecord[]; marks: KeyCounters },
  { clock, root }: { clock: SigningClock; root: Signer },
): Promise<SignedKeySet> {
  const kept = await db
    .selectFrom('signed_document')
    .selectAll()
    .where('kind', '=', 'keys')
    .where('aud', '=', tenant)
    .executeTakeFirst()
  const iat = Math.floor(clock.noLaterMs() / 1_000)
  const content = {
    aud: tenant,
    epoch: Math.max(kept?.epoch ?? 0, keySetEpoch),
    ver: kept?.ver ?? 1,
    ...(timeEpoch > 0 && { timeEpoch }),
    keys: records,
  }
  const isSame = kept?.hash === contentHash({ ...content, iat: 0, exp: 0 })
  const isOfTheFuture = kept !== undefined && kept.iat - iat > AHEAD && clock.untrustedReason() === null
  if (kept && isSame && !isOfTheFuture && iat - kept.iat < KEY_SET_LIFE - RENEW_BEFORE) return kept
  const next = { ...content, ver: kept ? kept.ver + 1 : 1 }
  const { aud, ...said } = next
  const claims: KeySetClaims = { aud, iat, exp: iat + KEY_SET_LIFE, ...said }
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

/** Tenants whose key set ends soon, or was signed while a clock was ahead; so many at once. */
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
