import { z } from 'zod'
import { originOf } from '../../platform/foundation/config.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { cardAddress, cardOf } from './card.ts'
import { enrol } from './ledger.ts'
import { assertActive, programOfCaller } from './program-of-caller.ts'
import { findMember } from './queries.ts'
import { UserId } from './schema.ts'

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
