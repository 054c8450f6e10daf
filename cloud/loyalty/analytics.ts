import type { Db } from '../persistence/database.ts'
import type { LoyaltyProgramRow } from '../persistence/tables/loyalty.ts'
import { monthsOf } from './months.ts'
import { amountOf, monthOf } from './program.ts'
import type { ProgramType } from './schema.ts'

/** What happened in some programs in one month or in all. Points, stamps and EUR are added up as they are. */
export interface Figures {
  members: number
  pointsIssued: number
  pointsRedeemed: number
  pointsExpired: number
  pointsReversed: number
  redemptions: number
}

const NONE: Figures = {
  members: 0,
  pointsIssued: 0,
  pointsRedeemed: 0,
  pointsExpired: 0,
  pointsReversed: 0,
  redemptions: 0,
}
const FIELD_OF = {
  earn: 'pointsIssued',
  redeem: 'pointsRedeemed',
  expire: 'pointsExpired',
  reverse: 'pointsReversed',
} as const

/** Figures of one program in one month. */
interface Cell {
  programId: string
  month: string
  figures: Figures
}

async function readCells(db: Db, programs: readonly LoyaltyProgramRow[]): Promise<Cell[]> {
  if (programs.length === 0) return []
  const ids = programs.map((program) => program.program_id)
  const types = new Map(programs.map((program) => [program.program_id, program.type as ProgramType]))
  const rows = await monthsOf(db, ids)
  return rows.map(({ program_id, month, kind, amount, entries }) => {
    if (kind === 'join') return { programId: program_id, month, figures: { ...NONE, members: entries } }
    // Not by its size: what was taken back for a refund that failed later is given back, and a month may have more of that.
    const units = amountOf(types.get(program_id) ?? 'points', kind === 'earn' ? amount : 0 - amount)
    const figures = {
      ...NONE,
      [FIELD_OF[kind as keyof typeof FIELD_OF]]: units,
      redemptions: kind === 'redeem' ? entries : 0,
    }
    return { programId: program_id, month, figures }
  })
}

function total(cells: readonly Cell[]): Figures {
  const sum = { ...NONE }
  for (const { figures } of cells)
    for (const field of Object.keys(sum) as (keyof Figures)[]) sum[field] += figures[field]
  for (const field of Object.keys(sum) as (keyof Figures)[]) sum[field] = Math.round(sum[field] * 100) / 100
  return sum
}

/** Redeemed of what was issued, percent with one decimal. */
function redemptionRate({ pointsIssued, pointsRedeemed }: Figures): number {
  return pointsIssued === 0 ? 0 : Math.round((pointsRedeemed / pointsIssued) * 1_000) / 10
}

/** The last months up to this one, the oldest first. */
function monthsUntil(nowMs: number, count: number): string[] {
  const now = new Date(nowMs)
  return Array.from({ length: count }, (_, i) =>
    monthOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - (count - 1 - i), 1)),
  )
}

/** Members, points and redemptions of some programs: in all, month by month, and program by program. */
export async function analyseLoyalty(db: Db, programs: readonly LoyaltyProgramRow[], nowMs: number, months: number) {
  const cells = await readCells(db, programs)
  const all = total(cells)
  return {
    ...all,
    redemptionRate: redemptionRate(all),
    monthly: monthsUntil(nowMs, months).map((month) => {
      const { members: newMembers, ...figures } = total(cells.filter((cell) => cell.month === month))
      return { month, newMembers, ...figures }
    }),
    programs: programs.map((program) => {
      const figures = total(cells.filter((cell) => cell.programId === program.program_id))
      return {
        programId: program.program_id,
        name: program.name,
        type: program.type as ProgramType,
        ...figures,
        redemptionRate: redemptionRate(figures),
      }
    }),
  }
}
