import { z } from 'zod'
import { base32 } from '../../../policy/base32.ts'
import { foldText } from '../../../policy/fold-text.ts'
import { newId } from '../../../policy/ids.ts'
import {
  badgeCode,
  cardDerivation,
  newBadgeVerifier,
  pinDerivation,
  publishedVerifier,
  parseCardNumber,
  DERIVED_KEY_BYTES,
  type KeyDerivation,
} from '../../../policy/operator-verifiers.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound } from '../../platform/foundation/failure.ts'
import { Id, iso, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { ownStore, ownStoreOf } from '../../platform/stores/own-store.ts'
import { revokeTokens } from '../leases/token-revocations.ts'
import { storeDocumentChanged } from '../../platform/stores/parsed-policy.ts'
import { assertPolicyFits } from '../store-policy/policy-operations.ts'
import {
  ensureStoreKey,
  findStoreKey,
  openVerifiers,
  storeKeyParts,
  verifierColumns,
  type Verifiers,
} from './store-keys.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { holderOf, sharedSlots } from '../../platform/foundation/shared-slots.ts'
import { scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Verifier } from '../../../policy/documents/store-documents.ts'

/** Each derivation keeps a core busy. More concurrent derivations would delay requests of gates and tills. */
const withDerivationSlot = sharedSlots(
  { atWork: 2, atWorkOfOne: 1, waiting: 20, waitingOfOne: 10 },
  { text: 'too many operators are being registered: try again', retryAfter: 1 },
)

const derive = promisify<string, Uint8Array, number, { N: number; r: number; p: number }, Buffer>(scrypt)

/** Derives the verifier of a secret that can be guessed, such as a PIN. Runs outside the main thread. */
async function deriveVerifier(secret: string, how: KeyDerivation): Promise<Verifier> {
  const { salt, n, r, p } = how
  const key = await derive(secret, Buffer.from(salt, 'base64url'), DERIVED_KEY_BYTES, { N: n, r, p })
  return { ...how, key: key.toString('base64url') }
}

/**
 * Operators: staff who may sign in at the agents of a store, even offline (ADR staff). The cloud derives a base verifier
 * from PIN or card (`deriveVerifier`). With the store key, the cloud computes the verifier for the signed policy
 * (store-keys.ts).
 */

/** Maximum number of operators per store, because the signed policy contains their verifiers. */
const OPERATORS_LIMIT = 500

const Pin = z.string().regex(/^\d{6,12}$/, 'must be 6 to 12 digits')
const Badge = z.string().describe('Text for a QR code or Code 128.')

const Operator = z.strictObject({
  operatorId: z.string(),
  storeId: z.string(),
  name: z.string(),
  hasPin: z.boolean(),
  hasCard: z.boolean(),
  createdAt: z.string(),
})

export const registerOperator = operation({
  name: 'registerOperator',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary:
    'Registers an operator who may approve at the stations of a store. Only this response contains the badge to print.',
  description:
    'At a station an operator signs in with the badge, with name and PIN, or with a card at a reader that has `staffCards`. A PIN has 6 to 12 digits. Agents receive only salted verifiers, which depend on a key of the store, and check them offline.',
  refusals: ['policy_too_large'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    storeId: Id,
    name: text(80).refine((name) => foldText(name) !== '', 'must not be blank'),
    pin: Pin.optional(),
    card: z
      .string()
      .max(64)
      .optional()
      .describe('Number of a staff card as the reader reports it: 4 to 16 bytes in hex.'),
  }),
  response: Operator.extend({ ...Success, badge: Badge }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Frau Petersen', pin: '471108' },
  // Derivation is slow, so it runs after the checks and before the transaction.
  async prepare(call, { storeId, pin, card: cardText }) {
    await ownStore(call, storeId)
    const number = cardText === undefined ? undefined : parseCardNumber(cardText)
    if (cardText !== undefined && number === undefined)
      throw invalid('card', 'must be 4 to 16 bytes in hex, as the reader reports them')
    await assertRoom(call.db, storeId)
    const { random } = call.services.platform
    const operatorId = newId('op', call.services.platform)
    const secret = base32.encode(random.bytes(16))
    const slow =
      pin === undefined && number === undefined
        ? {}
        : await withDerivationSlot(holderOf(call.caller), () => slowVerifiers(call, storeId, pin, number))
    return {
      operatorId,
      badge: badgeCode(operatorId, secret),
      base: { ...slow, badge: newBadgeVerifier(secret, random) },
    }
  },
  async run(call, { storeId, name, pin }, { operatorId, badge, base }) {
    const store = await ownStore(call, storeId)
    await assertRoom(call.db, storeId)
    await assertNameFree(call.db, storeId, name)
    const parts = storeKeyParts(call.services)
    const storeKey = await ensureStoreKey(call.db, storeId, parts)
    await assertFree(call.db, storeId, base, storeKey)
    await call.db
      .insertInto('operator')
      .values({
        operator_id: operatorId,
        tenant: store.tenant,
        store_id: storeId,
        name,
        ...verifierColumns(operatorId, base, storeKey, parts.sealer),
        created_ms: call.nowMs,
      })
      .execute()
    await assertPolicyFits(call, storeId)
    await storeDocumentChanged(call, storeId)
    call.changed(operatorId)
    return {
      success: true as const,
      operatorId,
      storeId,
      name,
      hasPin: pin !== undefined,
      hasCard: base.card !== undefined,
      createdAt: iso(call.nowMs),
      badge,
    }
  },
})

export const updateOperator = operation({
  name: 'updateOperator',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Replaces the PIN or the badge of an operator. The replaced one stops working.',
  description:
    'Only this response contains the new badge. Agents accept the replaced PIN or badge until they receive the next policy, within seconds while they are connected.',
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    operatorId: Id,
    pin: Pin.nullable().optional().describe('The new PIN; null removes it.'),
    newBadge: z.boolean().optional().describe('True makes a new badge.'),
  }),
  response: Operator.extend({ ...Success, badge: Badge.optional() }),
  example: { operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B', newBadge: true },
  async prepare(call, { operatorId, pin, newBadge = false }) {
    await ownOperator(call, operatorId)
    if (pin === undefined && !newBadge) throw invalid('newBadge', 'must be true, or send the new pin')
    const { random } = call.services.platform
    const slow =
      typeof pin === 'string'
        ? { pin: await withDerivationSlot(holderOf(call.caller), () => deriveVerifier(pin, pinDerivation(random))) }
        : {}
    const secret = base32.encode(random.bytes(16))
    return newBadge
      ? { badge: badgeCode(operatorId, secret), base: { ...slow, badge: newBadgeVerifier(secret, random) } }
      : { base: slow }
  },
  async run(call, { operatorId, pin }, { badge, base }) {
    const row = await ownOperator(call, operatorId)
    const parts = storeKeyParts(call.services)
    const before = openVerifiers(row, parts.sealer)
    const verifiers = { ...before, ...base, ...(pin === null && { pin: undefined }) }
    const storeKey = await ensureStoreKey(call.db, row.store_id, parts)
    const columns = verifierColumns(operatorId, verifiers, storeKey, parts.sealer)
    await call.db.updateTable('operator').set(columns).where('operator_id', '=', operatorId).execute()
    await assertPolicyFits(call, row.store_id)
    await storeDocumentChanged(call, row.store_id)
    call.changed(operatorId)
    return { success: true as const, ...toOperator({ ...row, ...columns }), ...(badge !== undefined && { badge }) }
  },
})

/** An operator that is not removed, of a store that the caller may see. Throws 404. */
async function ownOperator(call: Call, operatorId: string): Promise<Row<'operator'>> {
  const row = await call.db.selectFrom('operator').selectAll().where('operator_id', '=', operatorId).executeTakeFirst()
  if (!row || row.tenant !== knownCaller(call.caller).tenant || row.removed_ms !== null) throw notFound('operator')
  await ownStoreOf(call, row.store_id, 'operator')
  return row
}

function toOperator(row: Row<'operator'>): z.output<typeof Operator> {
  const verifiers = JSON.parse(row.verifiers) as Partial<Verifiers>
  return {
    operatorId: row.operator_id,
    storeId: row.store_id,
    name: row.name,
    hasPin: verifiers.pin !== undefined,
    hasCard: verifiers.card !== undefined,
    createdAt: iso(row.created_ms),
  }
}

async function slowVerifiers(
  { db, services }: Call,
  storeId: string,
  pin: string | undefined,
  number: string | undefined,
): Promise<Omit<Verifiers, 'badge'>> {
  const card = number === undefined ? undefined : await deriveVerifier(number, cardDerivation(storeId))
  const storeKey = card && (await findStoreKey(db, storeId, services.authority.sealer))
  if (storeKey !== undefined) await assertFree(db, storeId, { card }, storeKey)
  return {
    ...(pin !== undefined && { pin: await deriveVerifier(pin, pinDerivation(services.platform.random)) }),
    ...(card && { card }),
  }
}

async function assertRoom(db: Db, storeId: string): Promise<void> {
  const inStore = db.selectFrom('operator').where('store_id', '=', storeId).where('removed_ms', 'is', null)
  const { count } = await inStore.select((eb) => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
  if (Number(count) >= OPERATORS_LIMIT)
    throw invalid(
      'storeId',
      `has ${OPERATORS_LIMIT} operators, which is the maximum: remove unused ones`,
      'too_many_operators',
    )
}

/** Throws 409 if another operator of the store has this name: staff choose their name at a station before the PIN. */
async function assertNameFree(db: Db, storeId: string, name: string): Promise<void> {
  const rows = await db
    .selectFrom('operator')
    .select('name')
    .where('store_id', '=', storeId)
    .where('removed_ms', 'is', null)
    .execute()
  const other = rows.find((row) => foldText(row.name) === foldText(name))
  if (!other) return
  const message = `"${name}" is the same name as "${other.name}", an operator of this store: send a name that differs`
  throw new Failure('already-exists', message, { details: [{ path: 'name', code: 'name_taken', message }] })
}

/**
 * Throws 409 if another operator of the store has this card. The cards of a store share a salt, so equal cards have
 * equal keys.
 */
async function assertFree(db: Db, storeId: string, { card }: Pick<Verifiers, 'card'>, storeKey: string): Promise<void> {
  if (!card) return
  const { key } = publishedVerifier(card, storeKey)
  const rows = await db
    .selectFrom('operator')
    .select('verifiers')
    .where('store_id', '=', storeId)
    .where('removed_ms', 'is', null)
    .execute()
  const isTaken = rows.some(({ verifiers }) => (JSON.parse(verifiers) as Verifiers).card?.key === key)
  if (isTaken) throw new Failure('already-exists', 'another operator of the store has this card')
}

export const fetchOperators = operation({
  name: 'fetchOperators',
  area: 'protection',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Lists the operators of a store.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: z.strictObject({ ...Success, operators: z.array(Operator) }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    await ownStore(call, storeId)
    const rows = await call.db
      .selectFrom('operator')
      .selectAll()
      .where('store_id', '=', storeId)
      .where('removed_ms', 'is', null)
      .orderBy('operator_id')
      .execute()
    return { success: true as const, operators: rows.map(toOperator) }
  },
})

export const removeOperator = operation({
  name: 'removeOperator',
  area: 'protection',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Removes an operator, who can no longer approve, and revokes the unused authorizations that they approved.',
  changes: true,
  request: z.strictObject({ operatorId: Id }),
  response: z.strictObject(Success),
  example: { operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { operatorId }) {
    const row = await ownOperator(call, operatorId)
    await call.db
      .updateTable('operator')
      .set({ removed_ms: call.nowMs, verifiers: '{}', sealed: null })
      .where('operator_id', '=', operatorId)
      .execute()
    await revokeTokens(call, { kind: 'operator', storeId: row.store_id, operatorId }, 'its operator was removed')
    await storeDocumentChanged(call, row.store_id)
    call.changed(operatorId)
    return { success: true as const }
  },
})
