import type { GateTone } from './gate-view.ts'
import type { Tone } from './result-view.ts'

/** Frequencies that are played one after the other, Hz. Every result has its own melody. */
export const MELODIES: Readonly<Record<Tone | Exclude<GateTone, 'ready' | 'lost' | 'way_out'>, readonly number[]>> = {
  granted: [784, 1_047],
  refused: [247, 196],
  staff: [523, 392, 523],
  unsure: [392, 330],
  note: [659],
  green: [784, 1_047],
  amber: [523, 392, 523],
  alarm: [988, 740, 988, 740],
}
