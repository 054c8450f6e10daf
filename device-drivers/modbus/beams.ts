import type { Cancel, Platform } from '../../policy/platform.ts'

/** The two beams of a people counter: `outside` is on the street side, `inside` on the shop side. */
export type Beam = 'outside' | 'inside'

/** Counts people by the beam that they break first. */
export interface BeamCounter {
  set(beam: Beam, broken: boolean): void
  stop(): void
}

export interface BeamOptions {
  readonly platform: Platform
  onPerson(direction: 'in' | 'out'): void
  onBlocked(beam: Beam): void
}

/** Maximum time in which one person breaks both beams, ms. */
const WITHIN_MS = 2_000
const BLOCKED_MS = 30_000

/** Makes a counter. A beam that is already broken at the start does not count. */
export function beamCounter({ platform, onPerson, onBlocked }: BeamOptions): BeamCounter {
  const { clock, timers } = platform
  const broken = new Map<Beam, boolean>()
  const blocked = new Map<Beam, Cancel>()
  let first: { beam: Beam; atMs: number } | null = null

  return {
    set(beam, isBroken) {
      const before = broken.get(beam)
      if (before === isBroken) return
      broken.set(beam, isBroken)
      blocked.get(beam)?.()
      blocked.delete(beam)
      if (!isBroken) return
      blocked.set(
        beam,
        timers.after(BLOCKED_MS, () => onBlocked(beam)),
      )
      if (before === undefined) return
      if (first && first.beam !== beam && clock.elapsed() - first.atMs <= WITHIN_MS) {
        onPerson(beam === 'inside' ? 'in' : 'out')
        first = null
      } else first = { beam, atMs: clock.elapsed() }
    },
    stop() {
      for (const cancel of blocked.values()) cancel()
      blocked.clear()
    },
  }
}
