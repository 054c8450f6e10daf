import { z } from 'zod'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S } from './device.ts'
import type { DoorState } from './device.ts'

const secondsError = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }

/** How long a door may stand open, s. */
export const OpenSeconds = z.number(secondsError).min(1, secondsError).max(LONGEST_SIGNAL_S, secondsError).default(30)

/** Watches the door that a lock keeps shut. */
export interface DoorWatch {
  /** The door sensor changed, or was read after a reconnect. */
  set(open: boolean): void
  /** The lock was let go; the door may be opened for a moment from now on. */
  released(): void
  /** An emergency holds the lock open, or no longer: meanwhile an open door is as it should be. */
  heldOpen(held: boolean): void
  stop(): void
}

export interface DoorOptions {
  readonly platform: Platform
  /** A door that is open for longer is told. */
  readonly openSeconds: number
  /** How long the lock is open at each release, ms. */
  readonly pulseMs: number
  /** Told of every change; `alarm` for a person where something is wrong, null where an alarm is over. */
  onState(state: DoorState, alarm?: string | null): void
}

/** Behind a pulse, so long a hand needs to pull. */
const GRACE_MS = 3_000

/** Knows nothing before the first `set`: a door that is open when the agent starts was not forced by that. */
export function doorWatch({ platform, openSeconds, pulseMs, onState }: DoorOptions): DoorWatch {
  const { clock, timers } = platform
  let open: boolean | null = null
  let allowedUntil = -Infinity
  let alarmed = false
  let isHeld = false
  let cancel: Cancel = () => {}

  function opened(isKnown: boolean): void {
    if (isKnown && !isHeld && clock.elapsed() > allowedUntil) {
      alarmed = true
      onState('forced', 'the door was opened without a release')
    } else onState('open')
    countOpen()
  }

  function countOpen(): void {
    cancel()
    if (isHeld) return
    cancel = timers.after(openSeconds * 1_000, () => {
      alarmed = true
      onState('left_open', `the door has been open for ${openSeconds} s`)
    })
  }

  return {
    set(now) {
      if (now === open) return
      const isKnown = open !== null
      open = now
      cancel()
      if (now) return opened(isKnown)
      onState('shut', ...(alarmed ? [null] : []))
      alarmed = false
    },
    released: () => void (allowedUntil = clock.elapsed() + pulseMs + GRACE_MS),
    heldOpen(held) {
      if (held === isHeld) return
      isHeld = held
      // Hands may still be on the door when the emergency ends.
      allowedUntil = Math.max(allowedUntil, clock.elapsed() + GRACE_MS)
      if (open) countOpen()
    },
    stop: () => cancel(),
  }
}
