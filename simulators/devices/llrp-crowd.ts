import { setMaxListeners } from 'node:events'
import { randomFraction, pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { encodeSgtin } from '../../policy/gs1/sgtin.ts'
import type { LlrpReader } from './llrp.ts'

/** One person who walks through the gate. */
export interface Walk {
  readonly epcs: readonly string[]
  readonly direction: 'out' | 'in'
}

interface CrowdOptions {
  readonly platform: Platform
  readonly reader: Pick<LlrpReader, 'see' | 'setInput'>
  /** Tags in the shop; 1 to 100,000. */
  readonly tags: number
  readonly walkersPerMinute: number
  /** Antenna that faces the shop; default 1. */
  readonly insideAntenna?: number
  /** Antenna that faces the exit; default 2. */
  readonly outsideAntenna?: number
  /** Input of the beam in the middle of the gate; default 1. */
  readonly passageInput?: number
  readonly onWalk?: (walk: Walk) => void
}

/**
 * The tags of a shop, and people who carry tags through the gate. Some tags of the shop are so near to the gate that
 * its inside antenna reads them.
 */
interface Crowd {
  readonly epcs: readonly string[]
  /** Sends one person through; resolves when the person is gone. */
  walk(walk: Walk): Promise<void>
  stop(): void
}

/** Time that a person needs through the zone of the gate, ms: 1.7 m at 1.4 m/s. */
const WALK_MS = 1_200
const READ_EVERY_MS = 60
/** Positions on the way (0 to 1) at which the antennas read best. */
const INSIDE_AT = 0.3
const OUTSIDE_AT = 0.7
const BEAM_AT = 0.5
const WEAKEST_DBM = -72
/** Maximum number of tags that a person carries; some people carry none. */
const MAX_CARRIED = 3
const LEAVING = 0.7
const STRAY_SHARE = 0.03
const MAX_STRAYS = 20
const STRAY_EVERY_MS = 2_000

/** EPCs of one company prefix, 50 pieces of each article. */
export function epcsOfShop(tags: number): string[] {
  return Array.from({ length: tags }, (_, i) => {
    const itemReference = String(Math.floor(i / 50) + 1).padStart(6, '0')
    const made = encodeSgtin({
      scheme: 'sgtin-96',
      filter: 1,
      companyPrefix: '4012345',
      itemReference,
      serial: String(1_000 + i),
    })
    if (!made.ok) throw new RangeError(`no EPC for tag ${i}: ${made.reason}`)
    return made.hex
  })
}

/** Starts the crowd at a simulated reader. */
export function crowd(options: CrowdOptions): Crowd {
  const { platform, reader, insideAntenna = 1, outsideAntenna = 2, passageInput = 1 } = options
  const { timers, random } = platform
  const epcs = epcsOfShop(options.tags)
  const stopping = new AbortController()
  const { signal } = stopping
  // No limit, because each walker adds a listener.
  setMaxListeners(0, signal)
  const below = (n: number) => Math.floor(randomFraction(random) * n)

  function tryRead(epc: string, antenna: number, distance: number): void {
    const rssiDbm = -48 - 45 * distance - below(6)
    if (rssiDbm >= WEAKEST_DBM && below(10) < 8) reader.see(epc, { antenna, rssiDbm })
  }

  async function walk({ epcs: carried, direction }: Walk): Promise<void> {
    options.onWalk?.({ epcs: carried, direction })
    let hasPassed = false
    for (let ms = 0; ms <= WALK_MS && !signal.aborted; ms += READ_EVERY_MS) {
      const way = direction === 'out' ? ms / WALK_MS : 1 - ms / WALK_MS
      for (const epc of carried) {
        tryRead(epc, insideAntenna, Math.abs(way - INSIDE_AT))
        tryRead(epc, outsideAntenna, Math.abs(way - OUTSIDE_AT))
      }
      if (!hasPassed && ms >= WALK_MS * BEAM_AT) {
        hasPassed = true
        reader.setInput(passageInput, true)
      }
      await pause(timers, READ_EVERY_MS, signal).catch(() => {})
    }
    reader.setInput(passageInput, false)
  }

  async function sendWalkers(): Promise<void> {
    const everyMs = 60_000 / options.walkersPerMinute
    while (!signal.aborted) {
      await pause(timers, everyMs * (0.5 + randomFraction(random)), signal).catch(() => {})
      if (signal.aborted) return
      const carried = Array.from({ length: below(MAX_CARRIED + 1) }, () => epcs[below(epcs.length)] ?? '').filter(
        (epc) => epc !== '',
      )
      void walk({ epcs: [...new Set(carried)], direction: randomFraction(random) < LEAVING ? 'out' : 'in' })
    }
  }

  async function stray(epc: string): Promise<void> {
    while (!signal.aborted) {
      await pause(timers, STRAY_EVERY_MS * (0.5 + randomFraction(random)), signal).catch(() => {})
      if (!signal.aborted) reader.see(epc, { antenna: insideAntenna, rssiDbm: -66 - below(6) })
    }
  }

  if (options.walkersPerMinute > 0) void sendWalkers()
  for (const epc of epcs.slice(0, Math.min(MAX_STRAYS, Math.ceil(epcs.length * STRAY_SHARE)))) void stray(epc)
  return { epcs, walk, stop: () => stopping.abort(new DOMException('the crowd goes home', 'AbortError')) }
}
