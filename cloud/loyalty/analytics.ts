import type { Db } from '../persistence/database.ts'
import type { LoyaltyProgramRow } from '../persistence/tables/loyalty.ts'
import { monthsOf } from './months.ts'
import { amountOf, monthOf } from './program.ts'
import type { ProgramType } from './schema.ts'

/** Units of programs. Amounts of different units are never added. */
export const UNITS = ['points', 'stamps', 'cashback'] as const
export type Unit = (typeof UNITS)[number]

/** Unit of a program type. Tier programs count points. */
export function unitOf(type: ProgramType): Unit {
  return type === 'tier' ? 'points' : type
}

/** Amounts in one unit: points, stamps, or EUR of cashback. */
export interface Amounts {
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

async function readCells(db: Db, programs: readonly LoyaltyProgramRow[]): Promise<Cell[]> {
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
export async function analyseLoyalty(db: Db, programs: readonly LoyaltyProgramRow[], nowMs: number, months: number) {
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
