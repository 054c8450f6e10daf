import type { DeviceEvent } from './device.ts'

/** An input of a reader changed. */
export interface InputChange {
  readonly input: number
  readonly on: boolean
  /** Age of the change, ms. */
  readonly ageMs: number
}

const OLD_AFTER_MS = 2_000

/** Returns the events of an input change. Changes older than 2 s cause no events. */
export function inputEvents({ input, on, ageMs }: InputChange, passageInput: number | undefined): DeviceEvent[] {
  if (ageMs > OLD_AFTER_MS) return []
  const change: DeviceEvent = { type: 'input', input, on }
  return input === passageInput && on ? [change, { type: 'passage' }] : [change]
}
