import { assert } from '../../../policy/assert.ts'
import type { OperatorRecord, Verifier } from '../../../policy/documents/store-documents.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { newStoreKey, publishedVerifier, storeKeyId } from '../../../policy/operator-verifiers.ts'
import type { Sealer } from '../../platform/authority/sealing.ts'
import type { Services, Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { knownCaller, maySee } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'

/** Throws 404 if this person may not act as an operator of the store. */
export async function assertOperator(
  call: Pick<Call, 'db' | 'caller'>,
  operatorId: string,
  storeId: string,
): Promise<void> {
  if (!(await mayOperate(call, operatorId, storeId))) throw notFound('operator')
}

/**
 * False if the operator was removed, or is registered in another store of the account. Accepts unknown ids of a
 * merchant, who may use staff numbers of its own (ADR releases). An agent names only operators who are registered.
 */
export async function mayOperate(
  { db, caller }: Pick<Call, 'db' | 'caller'>,
  operatorId: string,
  storeId: string,
): Promise<boolean> {
  const operator = await db
    .selectFrom('operator')
    .innerJoin('store', 'store.store_id', 'operator.store_id')
    .select(['operator.store_id', 'operator.removed_ms', 'store.tenant'])
    .where('operator.operator_id', '=', operatorId)
    .executeTakeFirst()
  const known = knownCaller(caller)
  if (operator?.tenant !== known.tenant) return known.kind !== 'agent'
  // A key for other stores does not learn which operators exist.
  if (known.kind !== 'agent' && !maySee(known, operator)) return true
  return operator.store_id === storeId && operator.removed_ms === null
}

/**
 * Keys that operator verifiers depend on. The cloud stores sealed base verifiers. With the store key, the cloud
 * computes the verifiers that the policy publishes. Agents receive the store key in the login response.
 *
 * The cloud creates the store key at the first login of an agent, or with the first operator. When an agent is revoked,
 * the cloud replaces the key, so that the revoked agent cannot check verifiers of later policies. Other agents log in
 * again when a policy names a store key that they do not know.
 */

/** The verifiers of one operator. */
export type Verifiers = Pick<OperatorRecord, 'pin' | 'badge' | 'card'>

interface StoreKeyParts {
  sealer: Sealer
  random: Randomness
}

/** Dependencies for creating and sealing store keys. */
export function storeKeyParts({ authority, platform }: Pick<Services, 'authority' | 'platform'>): StoreKeyParts {
  return { sealer: authority.sealer, random: platform.random }
}

const keyContext = (storeId: string) => `store_key/${storeId}`
const operatorContext = (operatorId: string) => `operator/${operatorId}`

const sealedKeyOf = prepared((db, p: { storeId: string }) =>
  db.selectFrom('store_key').select('sealed').where('store_id', '=', p.storeId),
)

/** Reads the store's key. Returns undefined before the first login and the first operator. */
export async function findStoreKey(db: Db, storeId: string, sealer: Sealer): Promise<string | undefined> {
  const [row] = await sealedKeyOf(db, { storeId })
  return row && sealer.open(row.sealed, keyContext(storeId)).toString('utf8')
}

/** Reads the store's key, and creates it if it is missing. */
export async function ensureStoreKey(db: Db, storeId: string, parts: StoreKeyParts): Promise<string> {
  return (await findStoreKey(db, storeId, parts.sealer)) ?? writeNewKey(db, storeId, parts)
}

async function writeNewKey(db: Db, storeId: string, { sealer, random }: StoreKeyParts): Promise<string> {
  const key = newStoreKey(random)
  const row = { key_id: storeKeyId(key), sealed: sealer.seal(Buffer.from(key), keyContext(storeId)) }
  await db
    .insertInto('store_key')
    .values({ store_id: storeId, ...row })
    .onConflict((c) => c.column('store_id').doUpdateSet(row))
    .execute()
  return key
}

/** Columns of an operator's verifiers: the published verifiers and the sealed base verifiers. */
export function verifierColumns(
  operatorId: string,
  base: Verifiers,
  storeKey: string,
  sealer: Sealer,
): { verifiers: string; sealed: string } {
  return {
    verifiers: JSON.stringify(publishedVerifiers(base, storeKey)),
    sealed: sealer.seal(Buffer.from(JSON.stringify(base)), operatorContext(operatorId)),
  }
}

function publishedVerifiers({ pin, badge, card }: Verifiers, storeKey: string): Verifiers {
  const publish = (base: Verifier) => publishedVerifier(base, storeKey)
  return { ...(pin && { pin: publish(pin) }), badge: publish(badge), ...(card && { card: publish(card) }) }
}

/** Replaces the store's key and computes all verifiers with the new key. The caller raises the document version. */
export async function replaceStoreKey(db: Db, storeId: string, parts: StoreKeyParts): Promise<void> {
  if ((await sealedKeyOf(db, { storeId })).length === 0) return
  const storeKey = await writeNewKey(db, storeId, parts)
  const rows = (await operatorsOf(db, storeId)).map((row) => {
    const base = openVerifiers(row, parts.sealer)
    return { ...row, verifiers: JSON.stringify(publishedVerifiers(base, storeKey)) }
  })
  // Uses one statement per chunk, because a store may have 500 operators.
  for (const chunk of insertChunks(rows))
    await db
      .insertInto('operator')
      .values([...chunk])
      .onConflict((c) => c.column('operator_id').doUpdateSet((eb) => ({ verifiers: eb.ref('excluded.verifiers') })))
      .execute()
}

/** The base verifiers of an operator that is not removed. */
export function openVerifiers({ operator_id: operatorId, sealed }: Row<'operator'>, sealer: Sealer): Verifiers {
  assert(sealed !== null, `operator ${operatorId} has no sealed verifiers`)
  return JSON.parse(sealer.open(sealed, operatorContext(operatorId)).toString('utf8')) as Verifiers
}

function operatorsOf(db: Db, storeId: string): Promise<Row<'operator'>[]> {
  return db.selectFrom('operator').selectAll().where('store_id', '=', storeId).where('removed_ms', 'is', null).execute()
}
