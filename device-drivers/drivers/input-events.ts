import type { DeviceEvent } from './device.ts'

/** An input that changed at a reader. */
export interface InputChange {
  readonly input: number
  readonly on: boolean
  /** How long ago, ms. */
  readonly ageMs: number
}

const OLD_AFTER_MS = 2_000

/** What a change means for the shop. Movements that a reader tells more than 2 s late are history and are not told as if they were now. */
export function inputEvents({ input, on, ageMs }: InputChange, passageInput: number | undefined): DeviceEvent[] {
  if (ageMs > OLD_AFTER_MS) return []
  const change: DeviceEvent = { type: 'input', input, on }
  return input === passageInput && on ? [change, { type: 'passage' }] : [change]
}
