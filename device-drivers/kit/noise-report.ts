import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Noise } from './protocol/codec.ts'
import type { DeviceEvent } from './device.ts'

const AT_MOST_EVERY_MS = 1_000
/** Interval of the faults, and of the repetitions of the finding, ms. */
const FAULT_EVERY_MS = 600_000
const FINDING_EVERY_MS = 60_000
/** Number of unreadable messages, without a readable one between them, that make the finding. */
const UNREADABLE_IN_A_ROW = 3

/** Collects what one device sends and the driver does not understand. */
export interface NoiseReport {
  add(noise: Noise | null): void
  /** Call this function for each message with content. Keepalives and empty lists are neither readable nor unreadable. */
  understood(): void
  stop: Cancel
}

const MAX_SAMPLE_TEXT = 80
const MAX_SAMPLE_BYTES = 32

/** The sample as a text for a person: printable text in quotes, else hex. */
function sampleText(sample: Uint8Array): string {
  const bytes = Buffer.from(sample)
  const text = bytes
    .subarray(0, 4 * MAX_SAMPLE_TEXT)
    .toString('utf8')
    .replaceAll(/[\t\r\n ]+/g, ' ')
  const shown = text.slice(0, MAX_SAMPLE_TEXT)
  if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(shown) && !shown.includes('\ufffd')) return `'${shown}'`
  return `${bytes
    .subarray(0, MAX_SAMPLE_BYTES)
    .toString('hex')
    .replaceAll(/(..)(?=.)/g, '$1 ')} (hex)`
}

/**
 * The rule for all drivers: nothing that does not match is dropped silently.
 *
 * - Bytes of noise are added up and emitted at most once a second. The noise of a broken cable must not displace other
 *   events.
 * - A message that arrived whole but cannot be read (`sample`) is noise, too. A fault shows its first bytes, at most
 *   every 10 minutes.
 * - After three such messages in a row, the device has the finding `unreadable_data` until it sends a readable one.
 */
export function noiseReport(platform: Platform, emit: (event: DeviceEvent) => void): NoiseReport {
  let bytes = 0
  let detail = ''
  let cancel: Cancel | null = null
  let unreadable = 0
  let faultAt = -Infinity
  let findingAt = -Infinity

  function flush(): void {
    cancel = null
    if (bytes === 0) return
    emit({ type: 'noise', bytes, detail })
    bytes = 0
    cancel = platform.timers.after(AT_MOST_EVERY_MS, flush)
  }

  function onUnreadable(what: string, sample: Uint8Array): void {
    const now = platform.clock.elapsed()
    const begins = `it begins with ${sampleText(sample)}`
    unreadable++
    if (now - faultAt >= FAULT_EVERY_MS) {
      faultAt = now
      emit({ type: 'fault', detail: `data that the agent cannot read: ${what}; ${begins}` })
    }
    // Repeats the finding, because a device that connects again begins without findings.
    if (unreadable < UNREADABLE_IN_A_ROW || now - findingAt < FINDING_EVERY_MS) return
    findingAt = now
    const text = `only data arrives that the agent cannot read: ${what}; ${begins}`
    emit({ type: 'finding', finding: { code: 'unreadable_data', detail: text, isWarning: false } })
  }

  return {
    add(noise) {
      if (!noise) return
      bytes += noise.bytes
      detail = noise.detail
      if (!cancel) flush()
      if (noise.sample) onUnreadable(noise.detail, noise.sample)
    },
    understood() {
      unreadable = 0
      if (findingAt === -Infinity) return
      findingAt = -Infinity
      emit({ type: 'finding_over', code: 'unreadable_data' })
    },
    stop() {
      cancel?.()
      cancel = null
    },
  }
}
