import type { Cancel, Platform } from '../../../policy/platform.ts'

/** Watches the door that a lock keeps shut. */
export interface DoorWatch {
  /** The door sensor changed, or was read after a reconnect. */
  set(open: boolean): void
  /** The lock was let go; the door may be opened for a moment from now on. */
  released(): void
  stop(): void
}

export interface DoorOptions {
  readonly platform: Platform
  /** A door that is open for longer is told. */
  readonly openSeconds: number
  /** So long after a release has begun the door may be opened, ms. */
  readonly graceMs: number
  /** The door was forced or left open. Told once for each opening. */
  onAlarm(detail: string): void
  /** The door is shut again after an alarm. */
  onShut(): void
}

/** Knows nothing before the first `set`: a door that is open when the agent starts was not forced by that. */
export function doorWatch({ platform, openSeconds, graceMs, onAlarm, onShut }: DoorOptions): DoorWatch {
  const { clock, timers } = platform
  let open: boolean | null = null
  let allowedUntil = -Infinity
  let alarmed = false
  let cancel: Cancel = () => {}

  function opened(known: boolean): void {
    if (known && clock.elapsed() > allowedUntil) {
      alarmed = true
      onAlarm('the door was opened without a release')
    }
    cancel = timers.after(openSeconds * 1_000, () => {
      alarmed = true
      onAlarm(`the door has been open for ${openSeconds} s`)
    })
  }

  return {
    set(now) {
      if (now === open) return
      const known = open !== null
      open = now
      cancel()
      if (now) return opened(known)
      if (alarmed) onShut()
      alarmed = false
    },
    released: () => void (allowedUntil = clock.elapsed() + graceMs),
    stop: () => cancel(),
  }
}
