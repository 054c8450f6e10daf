import { z } from 'zod'
import { knownCaller } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import { Id, Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { LoyaltyProgramRow } from '../persistence/tables/loyalty.ts'
import { ownStore } from '../stores/own-store.ts'
import { analyseLoyalty } from './analytics.ts'
import { programOfCaller } from './program-of-caller.ts'
import { listPrograms, programsOfStore } from './queries.ts'
import { PROGRAM_TYPES } from './schema.ts'
import { rolesFrom } from '../foundation/roles.ts'

const REVERSED =
  'Amount reversed after cancellations and refunds. Negative in a month in which failed refunds returned more than ' +
  'was reversed.'
const FIGURES = {
  pointsIssued: z.number(),
  pointsRedeemed: z.number(),
  pointsExpired: z.number(),
  pointsReversed: z.number().describe(REVERSED),
  redemptions: z.int(),
}
const AMOUNTS = {
  issued: z.number(),
  redeemed: z.number(),
  expired: z.number(),
  reversed: z.number().describe(REVERSED),
}
const Rate = z.number().describe('Redeemed share of the issued amount, percent.')
const STAMPS = 'Stamp cards, in stamps.'
const CASHBACK = 'Cashback programs, in EUR.'
const ANALYSED_LIMIT = 500

export const getLoyaltyAnalytics = operation({
  name: 'getLoyaltyAnalytics',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Returns members, points and redemptions: in total, by month and by program.',
  description:
    'Contains one program, the programs of one store, or those of all own stores. Months are in UTC. Points, ' +
    'stamps and EUR are never added: `pointsIssued` and similar fields contain programs of type `points` and ' +
    '`tier`; in `programs` they have the unit of the program.',
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    programId: Id.optional(),
    storeId: Id.optional(),
    months: z.int().min(1).max(36).optional().describe('Number of months in `monthly`; default 12.'),
  }),
  response: z.strictObject({
    ...Success,
    members: z.int(),
    ...FIGURES,
    redemptionRate: Rate,
    stamps: z.strictObject({ ...AMOUNTS, redemptionRate: Rate }).describe(STAMPS),
    cashback: z.strictObject({ ...AMOUNTS, redemptionRate: Rate }).describe(CASHBACK),
    monthly: z.array(
      z.strictObject({
        month: z.string(),
        newMembers: z.int(),
        ...FIGURES,
        stamps: z.strictObject(AMOUNTS).describe(STAMPS),
        cashback: z.strictObject(AMOUNTS).describe(CASHBACK),
      }),
    ),
    programs: z.array(
      z.strictObject({
        programId: z.string(),
        name: z.string(),
        type: z.enum(PROGRAM_TYPES),
        members: z.int(),
        ...FIGURES,
        redemptionRate: Rate,
      }),
    ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { programId, storeId, months }) {
    const programs = await programsToAnalyse(call, programId, storeId)
    return { success: true as const, ...(await analyseLoyalty(call.db, programs, call.nowMs, months ?? 12)) }
  },
})

async function programsToAnalyse(
  call: Call,
  programId: string | undefined,
  storeId: string | undefined,
): Promise<LoyaltyProgramRow[]> {
  if (storeId !== undefined) await ownStore(call, storeId)
  if (programId !== undefined) {
    const { program } = await programOfCaller(call, programId)
    if (storeId !== undefined && program.row.store_id !== storeId) throw notFound('loyalty program')
    return [program.row]
  }
  if (storeId !== undefined) return programsOfStore(call.db, storeId)
  const caller = knownCaller(call.caller)
  const storeIds = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  return listPrograms(
    call.db,
    { tenant: caller.tenant, storeIds },
    { limit: ANALYSED_LIMIT, offset: 0, after: undefined },
  )
}
