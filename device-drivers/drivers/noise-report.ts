import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Noise } from '../protocols/codec.ts'
import type { DeviceEvent } from './device.ts'

const AT_MOST_EVERY_MS = 1_000

/** Collects the noise of one device. */
export interface NoiseReport {
  add(noise: Noise | null): void
  stop: Cancel
}

/**
 * Adds up the bytes of noise and emits them at most once a second. The noise of a broken cable must not displace other
 * events.
 */
export function noiseReport(platform: Platform, emit: (event: DeviceEvent) => void): NoiseReport {
  let bytes = 0
  let detail = ''
  let cancel: Cancel | null = null

  function flush(): void {
    cancel = null
    if (bytes === 0) return
    emit({ type: 'noise', bytes, detail })
    bytes = 0
    cancel = platform.timers.after(AT_MOST_EVERY_MS, flush)
  }

  return {
    add(noise) {
      if (!noise) return
      bytes += noise.bytes
      detail = noise.detail
      if (!cancel) flush()
    },
    stop() {
      cancel?.()
      cancel = null
    },
  }
}
