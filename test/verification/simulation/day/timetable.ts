import type { Chance } from '../virtual/chance.ts'

/** Plan of one shopper. */
export interface Shopper {
  readonly name: string
  /** Time of entry after opening, ms. */
  readonly comesMs: number
  readonly units: number
  /** `declined`: the payment fails. `changes-mind`: cancels after the payment. `thief`: leaves without paying. */
  readonly kind: 'buyer' | 'declined' | 'changes-mind' | 'thief'
  readonly releasedAt: 'station' | 'detacher'
  /** True if the shopper shows the receipt at the gate. */
  readonly showsReceipt: boolean
  /** Time between leaving and return, ms; undefined if the shopper keeps the goods. */
  readonly returnsAfterMs: number | undefined
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Hours of a whole day: 9:00 to 20:00 in the store's own time. */
export const WHOLE_DAY = { opensHour: 9, hours: 11 } as const
/** Time before closing from which no shopper enters, ms. */
const LAST_ENTRY_MS = 20 * MINUTE_MS

/** Outages of the day, ms after opening. */
export interface DayPlan {
  readonly lengthMs: number
  /** The store has no internet, but the phones of shoppers do. */
  readonly outage: { readonly fromMs: number; readonly toMs: number }
  /** The detacher's agent has no power. */
  readonly powerCut: { readonly fromMs: number; readonly toMs: number }
}

/**
 * Creates the plan of a day with at least one hour. A whole day has an internet outage from noon and a power cut in the
 * evening rush.
 */
export function dayPlan(hours: number): DayPlan {
  const lengthMs = hours * HOUR_MS
  const share = lengthMs / (WHOLE_DAY.hours * HOUR_MS)
  const outageMs = Math.min(30 * MINUTE_MS, lengthMs / 6)
  const [outage, cut] = [3 * HOUR_MS * share, 8.5 * HOUR_MS * share]
  return {
    lengthMs,
    outage: { fromMs: outage, toMs: outage + outageMs },
    powerCut: { fromMs: cut, toMs: cut + 3 * MINUTE_MS },
  }
}

/** Relative number of shoppers in each part of the day. Most shoppers come at noon and after work. */
const BUSY = [3, 4, 5, 9, 10, 6, 5, 6, 10, 11, 6]
/** Shares among all shoppers. */
const SHARES = { thief: 0.02, declined: 0.02, changesMind: 0.01, returns: 0.03, showsReceipt: 0.2, station: 0.5 }

/** Draws all shoppers of the day, in the order in which they enter. */
export function timetable(count: number, { lengthMs }: DayPlan, chance: Chance): Shopper[] {
  const total = BUSY.reduce((sum, share) => sum + share, 0)
  const partMs = lengthMs / BUSY.length
  const comes = () => {
    let left = chance.next() * total
    let part = 0
    while (left >= (BUSY[part] ?? total)) left -= BUSY[part++] ?? 0
    const atMs = Math.floor((part + chance.next()) * partMs)
    return Math.min(atMs, lengthMs - LAST_ENTRY_MS - chance.between(0, 10 * MINUTE_MS))
  }
  const times = Array.from({ length: count }, comes).sort((a, b) => a - b)
  return times.map((comesMs, n) => shopper(`shopper-${n + 1}`, comesMs, lengthMs, chance))
}

function shopper(name: string, comesMs: number, lengthMs: number, chance: Chance): Shopper {
  const mind = chance.next()
  const { thief, declined, changesMind } = SHARES
  const kind =
    mind < thief
      ? 'thief'
      : mind < thief + declined
        ? 'declined'
        : mind < thief + declined + changesMind
          ? 'changes-mind'
          : 'buyer'
  const backMs = chance.between(20 * MINUTE_MS, 3 * HOUR_MS)
  const isBackInTime = comesMs + backMs < lengthMs - 30 * MINUTE_MS
  return {
    name,
    comesMs,
    kind,
    units: chance.between(1, 3),
    releasedAt: chance.happens(SHARES.station) ? 'station' : 'detacher',
    showsReceipt: chance.happens(SHARES.showsReceipt),
    returnsAfterMs: chance.happens(SHARES.returns) && kind === 'buyer' && isBackInTime ? backMs : undefined,
  }
}
