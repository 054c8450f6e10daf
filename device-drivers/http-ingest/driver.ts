import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { mapper } from './protocol/mapping.ts'
import type { Mapper } from './protocol/mapping.ts'
import { jsonLines } from '../kit/protocol/json-lines.ts'
import type { JsonItem } from '../kit/protocol/json-lines.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { LinkProtocol, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'
import { antennaText } from '../impinj-iot/protocol/events.ts'
import { antennaWatch } from '../kit/antenna-watch.ts'
import type { AntennaWatch } from '../kit/antenna-watch.ts'
import { deviceLink } from '../kit/device-link.ts'
import type { DeviceLink } from '../kit/device-link.ts'
import { result } from '../kit/device.ts'
import type { CommandResult, DeviceEvent, DeviceIdentity, Finding, ProtectionDevice } from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { eventQueue } from '../kit/event-queue.ts'
import { filterDetector } from '../kit/filter-detector.ts'
import type { FilterDetector } from '../kit/filter-detector.ts'
import { httpIngestCapabilities, HttpIngestSettings, reportingAdvice } from './settings.ts'
import { readerClock } from '../llrp/reader-clock.ts'
import type { ReaderClock } from '../llrp/reader-clock.ts'
import { noiseReport } from '../kit/noise-report.ts'
import type { NoiseReport } from '../kit/noise-report.ts'
import { readOf } from '../kit/tag-read.ts'

/** Maximum size of a body that the agent's endpoint accepts, bytes. */
export const MAX_PUSHED_BYTES = 524_288

const CHECK_EVERY_MS = 1_000
const NO_READS = 'a body without tag reads where "mapping" expects them; set "mapping" to the format of the reader'

const STOPPED: Finding = {
  code: 'reader_mode',
  detail: 'the reader reports that its inventory has stopped; start it, or let the reader start it at power-up',
  isWarning: false,
}

/** One reader that posts its reads to the agent. */
class IngestReader implements ProtectionDevice {
  readonly #settings: HttpIngestSettings
  readonly #platform: Platform
  readonly #queue = eventQueue()
  readonly #noise: NoiseReport
  readonly #map: Mapper
  readonly #clock: ReaderClock
  readonly #filters: FilterDetector
  readonly #antennas: AntennaWatch
  readonly #silenceMs: number
  #watching = new AbortController()
  #lastReceivedAt: number
  #isClockSet = false
  #isReading = true
  readonly #line: DeviceLink<ProtocolClient>
  readonly events: AsyncIterable<DeviceEvent>

  constructor(settings: HttpIngestSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
    this.#noise = noiseReport(platform, this.#queue.put)
    this.#map = mapper(settings.mapping)
    this.#clock = readerClock(platform.clock)
    this.#filters = filterDetector(reportingAdvice(settings), this.#queue.put)
    this.#antennas = antennaWatch(settings.antennas, this.#queue.put)
    this.#silenceMs = settings.silentAfterSeconds === undefined ? Infinity : settings.silentAfterSeconds * 1_000
    this.#lastReceivedAt = platform.clock.elapsed()
    // Devices can share a link only if they use the same protocol object. Each reader posts to its own address, so each
    // reader has its own protocol object.
    const protocol: LinkProtocol<ProtocolClient> = {
      name: 'http-ingest',
      start: (link) => ({ ended: this.#listen(link) }),
    }
    this.#line = deviceLink(links, settings.link, protocol)
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    // Keeps the link after a silence. The reader posts to the same address again, so no read is lost.
    if (this.#line.member) return
    if (!this.#isClockSet) {
      // Assumes that the reader's clock agrees with this machine's, until the reader's timestamps show a difference.
      this.#clock.set({ utcUs: this.#platform.clock.wall() * 1_000 })
      this.#isClockSet = true
    }
    await this.#line.connect(signal, onFailure)
  }

  // The agent cannot send requests to the reader. If the reader was silent for `silentAfterSeconds`, the agent waits
  // for the next post.
  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    while (this.#silentMs() >= this.#silenceMs) {
      await pause(this.#platform.timers, CHECK_EVERY_MS, signal).catch(() => {
        throw new Error(this.#silenceText())
      })
    }
    this.#line.joined().markResponsive()
    return {
      description: `reader that sends to /ingest/${this.#settings.link.push}`,
      findings: [...this.#filters.findings, ...this.#antennas.findings, ...(this.#isReading ? [] : [STOPPED])],
    }
  }

  untilLost(): Promise<string> {
    this.#watching.abort()
    const now = new AbortController()
    this.#watching = now
    return Promise.race([this.#line.lost(), this.#untilSilent(now.signal)]).finally(() => now.abort())
  }

  async execute(): Promise<CommandResult> {
    return result('failed', false, 'not_supported', 'a reader that posts its reads has no outputs')
  }

  async close(): Promise<void> {
    this.#watching.abort()
    this.#line.leave()
    this.#noise.stop()
    this.#queue.end()
  }

  #emit({ value, text }: JsonItem): void {
    const { sightings, faults, antennas, isReading, strange } = this.#map(value)
    for (const detail of faults) this.#queue.put({ type: 'fault', detail })
    for (const change of antennas) {
      this.#queue.put({ type: 'fault', detail: antennaText(change) })
      this.#antennas.setConnected(change.antenna, change.isConnected)
    }
    if (sightings.length > 0) this.#setReading(true)
    if (isReading !== undefined) this.#setReading(isReading)
    if (strange > 0) this.#noise.add({ bytes: strange, detail: NO_READS, sample: Buffer.from(text.slice(0, 400)) })
    if (sightings.length > 0) this.#noise.understood()
    const arrived = this.#settings.clock === 'arrival' ? { seenAtMs: this.#platform.clock.elapsed() } : {}
    const reads = sightings.map((sighting) => ({ ...readOf(sighting, this.#clock), ...arrived }))
    this.#queue.putReads(reads)
    this.#filters.add(reads)
    this.#antennas.add(reads)
  }

  #setReading(isReading: boolean): void {
    if (isReading === this.#isReading) return
    this.#isReading = isReading
    this.#queue.put(isReading ? { type: 'finding_over', code: STOPPED.code } : { type: 'finding', finding: STOPPED })
  }

  async #listen(link: ByteLink): Promise<string> {
    const lines = jsonLines(MAX_PUSHED_BYTES + 1)
    try {
      for await (const chunk of link.bytes) {
        this.#lastReceivedAt = this.#platform.clock.elapsed()
        for (const item of lines.push(chunk)) this.#emit(item)
        this.#noise.add(lines.takeNoise())
      }
      return 'the ingest link was closed'
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  #silentMs(): number {
    return this.#platform.clock.elapsed() - this.#lastReceivedAt
  }

  #silenceText(): string {
    return `nothing was pushed for ${this.#settings.silentAfterSeconds} s; is the reader on, and does it send to this agent?`
  }

  async #untilSilent(signal: AbortSignal): Promise<string> {
    while (this.#silentMs() < this.#silenceMs) {
      if (signal.aborted || this.#silenceMs === Infinity) return new Promise(() => {})
      await pause(this.#platform.timers, Math.max(1, this.#silenceMs - this.#silentMs()), signal).catch(() => {})
    }
    return this.#silenceText()
  }
}

/**
 * Readers that post reads by HTTP: Keonn AdvanNet (HTTP service), Impinj R700 (webhook), others by a mapping. A body
 * has at most 512 KiB and 5,000 reads. See docs/reference/hardware/http-ingest.md.
 */
export const httpIngestDriver: Driver<HttpIngestSettings, typeof HttpIngestSettings> = {
  name: 'http-ingest',
  settings: HttpIngestSettings,
  linkUse: () => null,
  exclusiveResources: () => [],
  capabilities: httpIngestCapabilities,
  open: (settings, links, platform) => new IngestReader(settings, links, platform),
}
