import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Noise } from './protocol/codec.ts'
import type { DeviceEvent, Finding, TagRead } from './device.ts'
import type { AntennaSides } from './driver.ts'

/** Number of reads that prove a wrong antenna. A single read may be a fault of the radio. */
const PROOF_READS = 3
/** Antennas without a side that are counted. */
const MAX_OTHERS = 64

type Side = keyof AntennaSides

/** Finds out that a gate is blind on a side, although its reader is connected. */
export interface AntennaWatch {
  add(reads: readonly TagRead[]): void
  /** Call this function with what the reader reports about an antenna. A read proves that the antenna is connected. */
  setConnected(antenna: number, isConnected: boolean): void
  /** What is found at present, for `DeviceIdentity.findings`. */
  readonly findings: readonly Finding[]
}

/** Makes the watch of the configured antennas; without them it finds nothing. `put` receives changes. */
export function antennaWatch(antennas: AntennaSides | undefined, put: (event: DeviceEvent) => void): AntennaWatch {
  return antennas ? new Watch(antennas, put) : { add: () => {}, setConnected: () => {}, findings: [] }
}

class Watch implements AntennaWatch {
  readonly #antennas: AntennaSides
  readonly #put: (event: DeviceEvent) => void
  readonly #sides: ReadonlyMap<number, Side>
  readonly #disconnected = new Set<number>()
  /** Sides that no configured antenna has read yet. */
  readonly #silent: Set<Side>
  /** Number of reads by antennas that have no side. */
  readonly #others = new Map<number, number>()
  /** Consecutive reads without an antenna. */
  #unnamed = 0
  #detail: string | null = null

  constructor(antennas: AntennaSides, put: (event: DeviceEvent) => void) {
    this.#antennas = antennas
    this.#put = put
    this.#sides = new Map([
      ...antennas.inside.map((antenna) => [antenna, 'inside'] as const),
      ...antennas.outside.map((antenna) => [antenna, 'outside'] as const),
    ])
    this.#silent = new Set(this.#sides.values())
  }

  get findings(): readonly Finding[] {
    return this.#detail === null ? [] : [{ code: 'reader_antenna', detail: this.#detail, isWarning: false }]
  }

  add(reads: readonly TagRead[]): void {
    for (const { antenna } of reads) {
      if (antenna === undefined) {
        this.#unnamed++
        continue
      }
      this.#unnamed = 0
      const side = this.#sides.get(antenna)
      if (side) {
        this.#silent.delete(side)
        this.#disconnected.delete(antenna)
      } else if (this.#others.has(antenna) || this.#others.size < MAX_OTHERS)
        this.#others.set(antenna, (this.#others.get(antenna) ?? 0) + 1)
    }
    this.#update()
  }

  setConnected(antenna: number, isConnected: boolean): void {
    if (!this.#sides.has(antenna)) return
    if (isConnected) this.#disconnected.delete(antenna)
    else this.#disconnected.add(antenna)
    this.#update()
  }

  #update(): void {
    const detail = this.#disconnectedText() ?? this.#unnamedText() ?? this.#otherText()
    if (detail === this.#detail) return
    this.#detail = detail
    const [finding] = this.findings
    this.#put(finding ? { type: 'finding', finding } : { type: 'finding_over', code: 'reader_antenna' })
  }

  #disconnectedText(): string | null {
    if (this.#disconnected.size === 0) return null
    const names = [...this.#disconnected].map((antenna) => `antenna ${antenna} (${this.#sides.get(antenna)})`)
    return `${names.join(', ')}: not connected; check the cable`
  }

  #unnamedText(): string | null {
    return this.#unnamed < PROOF_READS
      ? null
      : 'the reads name no antenna, so the gate cannot tell inside from outside: let the reader report the antenna of each read, or remove "antennas"'
  }

  #otherText(): string | null {
    const [side] = this.#silent
    const other = [...this.#others].find(([, reads]) => reads >= PROOF_READS)?.[0]
    if (side === undefined || other === undefined) return null
    const wanted = this.#antennas[side].join(' or ')
    return `antenna ${other} reads and is not in "antennas", and no antenna of "${side}" has read yet: set "${side}": [${other}], or use antenna ${wanted} for it`
  }
}

/** Reads in a row without a further read of the same tag within `CLOSE_MS`, after which a reader counts as one that filters. */
const READS = 200
const CLOSE_MS = 400
const MAX_TAGS = 5_000

/**
 * Finds out that a reader, or software before it, reports a tag again only after a time, or never. A gate would miss
 * people who walk fast. A reader that reports each read reads a tag several times a second.
 */
export interface FilterDetector {
  add(reads: readonly TagRead[]): void
  /** What is found at present, for `DeviceIdentity.findings`. */
  readonly findings: readonly Finding[]
}

/** Makes the detector. `advice` names the setting to change and its new value; `put` receives changes. */
export function filterDetector(advice: string, put: (event: DeviceEvent) => void): FilterDetector {
  /** Last read of each tag, ms; ordered by the time at which it was added. */
  const lastReads = new Map<string, number>()
  let newestMs = Number.NEGATIVE_INFINITY
  let alone = 0
  let finding: Finding | null = null

  function onClose(): void {
    alone = 0
    if (finding) put({ type: 'finding_over', code: finding.code })
    finding = null
  }

  function onAlone(): void {
    if (++alone < READS || finding) return
    finding = {
      code: 'reader_filters',
      detail: `the reader filters: after each of ${READS} reads it did not report the tag again within ${CLOSE_MS / 1_000} s, so that a gate misses who walks fast; ${advice}`,
      isWarning: false,
    }
    put({ type: 'finding', finding })
  }

  /** Counts the tags that the reader has not reported again, up to the reports before this one. */
  function forgetOld(): void {
    for (const [name, lastMs] of lastReads) {
      if (newestMs - lastMs < CLOSE_MS && lastReads.size <= MAX_TAGS) return
      lastReads.delete(name)
      if (newestMs - lastMs >= CLOSE_MS) onAlone()
    }
  }

  return {
    add(reads) {
      forgetOld()
      // A report may list the reads of one tag after those of another.
      for (const { tag, seenAtMs } of reads) {
        const name = 'epc' in tag ? tag.epc : tag.tagUid
        const last = lastReads.get(name)
        newestMs = Math.max(newestMs, seenAtMs)
        // Reads that the reader sends again, or that come in another order, show nothing.
        if (last !== undefined && seenAtMs < last) continue
        if (last !== undefined && seenAtMs - last < CLOSE_MS) onClose()
        else if (last !== undefined) onAlone()
        lastReads.delete(name)
        lastReads.set(name, seenAtMs)
      }
    },
    get findings() {
      return finding ? [finding] : []
    },
  }
}

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
