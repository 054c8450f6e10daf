import { z } from 'zod'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S } from './device.ts'
import type { DoorState } from './device.ts'

const secondsError = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }

/** Maximum time that a door may be open, s. */
export const OpenSeconds = z.number(secondsError).min(1, secondsError).max(LONGEST_SIGNAL_S, secondsError).default(30)

/** Watches the door behind a lock. */
export interface DoorWatch {
  /** Sets the state of the door sensor, after a change or a reconnect. */
  set(open: boolean): void
  /**
   * Call this function when a release begins. Until the pulse and the grace period end, opening the door raises no
   * alarm.
   */
  released(): void
  /** Sets whether an emergency holds the lock open. During such an emergency, an open door raises no alarm. */
  heldOpen(held: boolean): void
  stop(): void
}

interface DoorOptions {
  readonly platform: Platform
  /** Time after which an open door raises the alarm `left_open`, s. */
  readonly openSeconds: number
  /** Duration of a release pulse, ms. */
  readonly pulseMs: number
  /** Called at each change. `alarm` is a text for a person; null ends the alarm. */
  onState(state: DoorState, alarm?: string | null): void
}

/** Grace period: time after a pulse in which a person may still open the door, ms. */
const GRACE_MS = 3_000

/** Makes a watch. The first `set` raises no alarm: the door may have been open before the agent started. */
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
    startOpenTimer()
  }

  function startOpenTimer(): void {
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
      // A person may still hold the door when the emergency ends.
      allowedUntil = Math.max(allowedUntil, clock.elapsed() + GRACE_MS)
      if (open) startOpenTimer()
    },
    stop: () => cancel(),
  }
}
