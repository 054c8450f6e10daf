import type { Chance } from '../chance.ts'

/** What a shopper has in mind. */
export interface Shopper {
  readonly name: string
  /** Enters so long after opening, ms. */
  readonly comesMs: number
  readonly units: number
  /** `declined`: the card is; `changes-mind`: cancels once it is paid; `thief`: walks out with the goods. */
  readonly kind: 'buyer' | 'declined' | 'changes-mind' | 'thief'
  readonly releasedAt: 'station' | 'detacher'
  /** Shows the receipt at the gate, as some do. */
  readonly showsReceipt: boolean
  /** Brings the goods back so long after leaving, ms. */
  readonly returnsAfterMs: number | undefined
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** What happens on the day, ms after opening. */
export const DAY = {
  /** 9:00 to 20:00 in the store's own time. */
  opensHour: 9,
  lengthMs: 11 * HOUR_MS,
  /** Nobody comes any more so long before the end. */
  lastEntryMs: 20 * MINUTE_MS,
  /** The store's line to the internet is down from noon on; people's telephones are not on it. */
  outage: { fromMs: 3 * HOUR_MS, lastsMs: 30 * MINUTE_MS },
  /** In the evening rush the detacher's agent loses power. */
  powerCut: { atMs: 8.5 * HOUR_MS, lastsMs: 3 * MINUTE_MS },
} as const

/** How busy each hour is, from the first: noon, and after work. */
const BUSY = [3, 4, 5, 9, 10, 6, 5, 6, 10, 11, 6]
/** Of all shoppers. */
const SHARES = { thief: 0.02, declined: 0.02, changesMind: 0.01, returns: 0.03, showsReceipt: 0.2, station: 0.5 }

/** Who comes on that day and when, in the order in which they enter. */
export function timetable(count: number, chance: Chance): Shopper[] {
  const total = BUSY.reduce((sum, share) => sum + share, 0)
  const comes = () => {
    let left = chance.next() * total
    let hour = 0
    while (left >= (BUSY[hour] ?? total)) left -= BUSY[hour++] ?? 0
    const atMs = hour * HOUR_MS + chance.between(0, HOUR_MS - 1)
    return Math.min(atMs, DAY.lengthMs - DAY.lastEntryMs - chance.between(0, 10 * MINUTE_MS))
  }
  const times = Array.from({ length: count }, comes).sort((a, b) => a - b)
  return times.map((comesMs, n) => shopper(`shopper-${n + 1}`, comesMs, chance))
}

function shopper(name: string, comesMs: number, chance: Chance): Shopper {
  const mind = chance.next()
  const { thief, declined, changesMind } = SHARES
  const kind = mind < thief ? 'thief' : mind < thief + declined ? 'declined' : mind < thief + declined + changesMind ? 'changes-mind' : 'buyer'
  const backMs = chance.between(20 * MINUTE_MS, 3 * HOUR_MS)
  const isBackInTime = comesMs + backMs < DAY.lengthMs - 30 * MINUTE_MS
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
