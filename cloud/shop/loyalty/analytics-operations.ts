import { z } from 'zod'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { programOfCaller, amountOf, monthOf } from './program.ts'
import { listPrograms, programsOfStore, monthsOf } from './queries.ts'
import { PROGRAM_TYPES, type ProgramType } from './schema.ts'
import type { Db } from '../../platform/persistence/database.ts'

/** Units of programs. Amounts of different units are never added. */
const UNITS = ['points', 'stamps', 'cashback'] as const
type Unit = (typeof UNITS)[number]

/** Unit of a program type. Tier programs count points. */
function unitOf(type: ProgramType): Unit {
  return type === 'tier' ? 'points' : type
}

/** Amounts in one unit: points, stamps, or EUR of cashback. */
interface Amounts {
  issued: number
  redeemed: number
  expired: number
  reversed: number
}

/** Members, redemptions, and the amounts by unit. */
interface Figures {
  members: number
  redemptions: number
  amounts: Record<Unit, Amounts>
}

const NO_AMOUNTS: Amounts = { issued: 0, redeemed: 0, expired: 0, reversed: 0 }
const FIELD_OF = { earn: 'issued', redeem: 'redeemed', expire: 'expired', reverse: 'reversed' } as const

/** Figures of one program in one month. */
interface Cell {
  programId: string
  month: string
  figures: Figures
}

async function readCells(db: Db, programs: readonly Row<'loyalty_program'>[]): Promise<Cell[]> {
  const ids = programs.map((program) => program.program_id)
  const types = new Map(programs.map((program) => [program.program_id, program.type as ProgramType]))
  const rows = await monthsOf(db, ids)
  return rows.map(({ program_id, month, kind, amount, entries }) => {
    const figures = noFigures()
    if (kind === 'join') return { programId: program_id, month, figures: { ...figures, members: entries } }
    const type = types.get(program_id) ?? 'points'
    // The amount may be negative: if a refund fails, points that were reversed in an earlier month are credited again.
    figures.amounts[unitOf(type)][FIELD_OF[kind as keyof typeof FIELD_OF]] = amountOf(
      type,
      kind === 'earn' ? amount : 0 - amount,
    )
    return { programId: program_id, month, figures: { ...figures, redemptions: kind === 'redeem' ? entries : 0 } }
  })
}

function noFigures(): Figures {
  const amounts = { points: { ...NO_AMOUNTS }, stamps: { ...NO_AMOUNTS }, cashback: { ...NO_AMOUNTS } }
  return { members: 0, redemptions: 0, amounts }
}

function total(cells: readonly Cell[]): Figures {
  const sum = noFigures()
  for (const { figures } of cells) {
    sum.members += figures.members
    sum.redemptions += figures.redemptions
    for (const unit of UNITS)
      for (const field of Object.values(FIELD_OF))
        sum.amounts[unit][field] = inCents(sum.amounts[unit][field] + figures.amounts[unit][field])
  }
  return sum
}

/** Rounds to two decimals to remove floating-point errors of EUR sums. */
function inCents(amount: number): number {
  return Math.round(amount * 100) / 100
}

/** Redeemed share of the issued amount, percent with one decimal. */
function redemptionRate({ issued, redeemed }: Amounts): number {
  return issued === 0 ? 0 : Math.round((redeemed / issued) * 1_000) / 10
}

function named({ issued, redeemed, expired, reversed }: Amounts) {
  return { pointsIssued: issued, pointsRedeemed: redeemed, pointsExpired: expired, pointsReversed: reversed }
}

/** The last `count` months including the current one, the oldest first. */
function monthsUntil(nowMs: number, count: number): string[] {
  const now = new Date(nowMs)
  return Array.from({ length: count }, (_, i) =>
    monthOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - (count - 1 - i), 1)),
  )
}

/**
 * Figures of `programs`: in total, by month and by program.
 *
 * @param months Number of months in `monthly`. The last is the month of `nowMs`.
 */
async function analyseLoyalty(db: Db, programs: readonly Row<'loyalty_program'>[], nowMs: number, months: number) {
  const cells = await readCells(db, programs)
  const { members, redemptions, amounts } = total(cells)
  const withRate = (unit: Unit) => ({ ...amounts[unit], redemptionRate: redemptionRate(amounts[unit]) })
  return {
    members,
    redemptions,
    ...named(amounts.points),
    redemptionRate: redemptionRate(amounts.points),
    stamps: withRate('stamps'),
    cashback: withRate('cashback'),
    monthly: monthsUntil(nowMs, months).map((month) => {
      const sum = total(cells.filter((cell) => cell.month === month))
      const { points, stamps, cashback } = sum.amounts
      return { month, newMembers: sum.members, redemptions: sum.redemptions, ...named(points), stamps, cashback }
    }),
    programs: programs.map((program) => {
      const type = program.type as ProgramType
      const sum = total(cells.filter((cell) => cell.programId === program.program_id))
      const own = sum.amounts[unitOf(type)]
      return {
        programId: program.program_id,
        name: program.name,
        type,
        members: sum.members,
        redemptions: sum.redemptions,
        ...named(own),
        redemptionRate: redemptionRate(own),
      }
    }),
  }
}

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
): Promise<Row<'loyalty_program'>[]> {
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
