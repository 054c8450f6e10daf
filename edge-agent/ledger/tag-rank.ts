import { RANK_LIMIT } from '../../policy/documents/till-notice.ts'

const DAY_MS = 86_400_000
/** More reports of one tag than a day has. */
const RANKS_PER_DAY = 10_000
/** Days before 2026. */
const FIRST_DAY = 20_454

/**
 * Rank of the next report of a tag. It rises with each report, and with the days, because an agent forgets tags, and
 * its ledger may be an older copy.
 */
export function nextRank(rank: number | undefined, nowMs: number, step = 1): number {
  const ofDay = (Math.floor(nowMs / DAY_MS) - FIRST_DAY) * RANKS_PER_DAY
  return Math.min(RANK_LIMIT, Math.max((rank ?? 0) + 1, ofDay) + step - 1)
}

/**
 * Step of a return of goods whose sale is not known here: other agents have reported more about them. Of so many reports
 * the return counts as the last one, so that goods on the shelf alarm.
 */
export const UNSEEN_STEP = 1_000
