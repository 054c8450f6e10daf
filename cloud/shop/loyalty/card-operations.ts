import { z } from 'zod'
import { originOf } from '../../platform/foundation/config.ts'
import { notFound, invalid } from '../../platform/foundation/failure.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import { rolesFrom, type Tenant } from '../../platform/foundation/caller.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { enrol } from './ledger.ts'
import { assertActive, programOfCaller, openProgram, type Program } from './program.ts'
import { findMember, findMemberByCard, programOfMember, saveCard } from './queries.ts'
import { UserId } from './schema.ts'
import { createHash, createHmac } from 'node:crypto'
import { base32 } from '../../../policy/base32.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findStore } from '../../platform/stores/queries.ts'

/** Length of the random part of a code: 120 bits, 24 characters. */
const CODE_BYTES = 15
const CODE = /[A-Z2-7]{24}$/

/** Address of the page of a card; also the content of its QR code, which upper case makes smaller. */
export function cardAddress(origin: string, code: string): string {
  return `${origin}/L/${code}`.toUpperCase()
}

/**
 * Code of a member's card. The database holds only its hash, so the code is derived again each time. `isNew` makes the
 * next card, and ends the card before.
 */
async function cardOf(
  { db, services, nowMs }: Pick<Call, 'db' | 'services' | 'nowMs'>,
  program: Program,
  member: Row<'loyalty_member'>,
  isNew: boolean,
): Promise<string> {
  // A restored cloud must not make a card again that the lost one has ended.
  const number = isNew ? Math.max(member.card_number + 1, Math.floor(nowMs / 1_000)) : Math.max(1, member.card_number)
  const { receiptSecret } = await services.authority.readyWithin(db, program.row.tenant as Tenant)
  // `enrolled_ms` keeps old cards invalid if a customer is erased and joins again.
  const identity = ['loyalty-card/1', member.program_id, member.user_id, member.enrolled_ms, number].join('\0')
  const bytes = createHmac('sha256', receiptSecret).update(identity).digest().subarray(0, CODE_BYTES)
  const code = base32.encode(bytes)
  const card_hash = hashOf(code)
  if (member.card_hash !== card_hash) await saveCard(db, { ...member, card_number: number, card_hash })
  return code
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/** A card with its program and store. */
export interface Card {
  code: string
  member: Row<'loyalty_member'>
  program: Program
  store: Row<'store'>
}

/**
 * Finds a card of any tenant by its code, or by the text of its QR code. Scanners that act as keyboards may change the
 * case and the punctuation of the address, so only the end of the text counts.
 */
export async function findCard(db: Db, text: string): Promise<Card | undefined> {
  const [code] = CODE.exec(text.trim().toUpperCase()) ?? []
  if (code === undefined) return undefined
  const member = await findMemberByCard(db, hashOf(code))
  if (!member) return undefined
  const row = await programOfMember(db, member)
  const store = row && (await findStore(db, row.store_id))
  return store && { code, member, program: openProgram(row, store), store }
}

/** Customer that a request names by `userId` or by `cardCode`. Throws 400 for none and for both, 404 for no such card. */
export async function memberOfRequest(
  { db }: Pick<Call, 'db'>,
  { row }: Program,
  { userId, cardCode }: { userId?: string | undefined; cardCode?: string | undefined },
): Promise<string> {
  if (cardCode === undefined) {
    if (userId === undefined) throw invalid('userId', 'is missing: send userId or cardCode', 'missing')
    return userId
  }
  if (userId !== undefined) throw invalid('cardCode', 'excludes userId: send only one of them')
  const card = await findCard(db, cardCode)
  if (card?.member.program_id !== row.program_id) throw notFound('loyalty card of this program')
  return card.member.user_id
}

export const issueLoyaltyCard = operation({
  name: 'issueLoyaltyCard',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Returns the loyalty card of a customer: a page with balance, rewards and QR code.',
  description:
    'Enrols the customer if necessary. Repeated calls return the same card. With `renew`, the card gets a new code, and ' +
    'the code before is no longer accepted. Tills send the scanned code as `cardCode` to `addLoyaltyPoints` and ' +
    '`redeemLoyaltyPoints`. Who has the address can see and show the card.',
  changes: true,
  secretResponse: true,
  refusals: ['program_inactive'],
  request: z.strictObject({
    programId: Id,
    userId: UserId,
    renew: z.boolean().optional().describe('True for a lost card: replaces the code.'),
  }),
  response: z.strictObject({
    ...Success,
    programId: z.string(),
    userId: z.string(),
    cardCode: z.string(),
    url: z.string().describe('Address of the card, for the customer; also the content of the QR code.'),
    imageBase64: z.string().describe('PNG of the QR code.'),
    enrolled: z.boolean().describe('True if this call enrolled the customer.'),
  }),
  example: { programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B', userId: 'shopper-17' },
  emits: ['loyalty.enrollment'],
  async run(call, { programId, userId, renew = false }) {
    const { program } = await programOfCaller(call, programId)
    const known = await findMember(call.db, programId, userId)
    if (!known) assertActive(program)
    const enrolled = known === undefined && (await enrol(call, program, userId, 'manual'))
    const member = known ?? (await findMember(call.db, programId, userId))
    if (!member) throw notFound('member')
    const cardCode = await cardOf(call, program, member, renew)
    const url = cardAddress(originOf(call.services.config), cardCode)
    call.changed(programId)
    return { success: true as const, programId, userId, cardCode, url, imageBase64: qrPngBase64(url), enrolled }
  },
})
