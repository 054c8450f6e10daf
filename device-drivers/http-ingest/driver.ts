import { pause, type Platform } from '../../policy/platform.ts'
import { mapper, type Mapper, PATH } from './protocol/mapping.ts'
import { jsonLines, type JsonItem } from '../kit/protocol/json-lines.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { LinkProtocol, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'
import { antennaText } from '../impinj-iot/protocol/requests.ts'
import {
  antennaWatch,
  type AntennaWatch,
  filterDetector,
  type FilterDetector,
  noiseReport,
  type NoiseReport,
} from '../kit/noise-report.ts'
import { deviceLink, type DeviceLink } from '../kit/device-link.ts'
import {
  result,
  type CommandResult,
  type DeviceEvent,
  type DeviceIdentity,
  type Finding,
  type ProtectionDevice,
} from '../kit/device.ts'
import { type Driver, DeviceId, TAG_ABSENT_MS, type Capabilities } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { readerClock, type ReaderClock } from '../llrp/reader-clock.ts'
import { readOf } from '../kit/continuous-reading.ts'
import { z } from 'zod'
import { PushLink } from '../transports/link-settings.ts'
import { FEEDS_WITH_MINIMUM_RSSI, antennaSettings, boundedInt } from '../kit/reader-settings.ts'

const pathError = { error: 'give a path such as "data.reads[*]", "epc" or "$"' }
const path = z.string(pathError).regex(PATH, pathError)
const single = path.refine((value) => !value.includes('*'), { error: 'give a path to one field, without [*]' })
const secretError = { error: 'give a secret of this device alone, 16 to 128 characters without spaces' }
const perDbm = { error: 'give how many parts are 1 dBm, 1 to 1000' }
const silence = { error: 'give seconds, 5 to 86400' }

const Mapping = z.strictObject({
  reads: path.meta({ description: 'path of the reads: "reads[*]"; "$" for a body that is one read' }),
  epc: single,
  epcIs: z.enum(['hex', 'base64'], { error: 'use "hex" or "base64"' }).default('hex'),
  antenna: single.optional(),
  mux1: single.optional().meta({
    description: 'port of a multiplexer: antenna 10301 is antenna port 1, port 3 of mux1 and port 1 of mux2',
  }),
  mux2: single.optional(),
  rssi: single.optional(),
  rssiPerDbm: z.number(perDbm).min(1, perDbm).max(1_000, perDbm).default(1),
  seenAt: single.optional().meta({ description: 'the reader’s time of the read: ISO 8601, or s, ms or µs since 1970' }),
  only: z
    .strictObject({ path: single, equals: z.string().max(128) })
    .optional()
    .meta({ description: 'only reads in which this field has this value' }),
})

/** One reader that posts its reads to the agent by HTTP. */
const HttpIngestSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('http-ingest'),
  link: PushLink,
  secret: z
    .string(secretError)
    .regex(/^[!-~]{16,128}$/, secretError)
    .meta({ description: 'secret that the reader sends: as bearer token, as password, or in X-Untag-Secret' }),
  mapping: z
    .union([z.enum(['keonn', 'impinj']), Mapping], { error: 'use "keonn", "impinj", or { "reads": "…", "epc": "…" }' })
    .meta({ description: 'paths of the reads in the body that the reader sends' }),
  ...FEEDS_WITH_MINIMUM_RSSI,
  antennas: antennaSettings(boundedInt('the number of an antenna', 1, 65_535), ''),
  clock: z
    .enum(['reader', 'arrival'], {
      error: 'use "reader" (the reader’s timestamps, corrected) or "arrival" (the time of the post)',
    })
    .default('reader'),
  silentAfterSeconds: z.int(silence).min(5, silence).max(86_400, silence).optional().meta({
    description: 'time without a post after which the reader counts as lost, for readers that also post without reads',
  }),
})
type HttpIngestSettings = z.infer<typeof HttpIngestSettings>

/** The setting of the reader with which it reports each read. */
function reportingAdvice({ mapping }: HttpIngestSettings): string {
  if (mapping === 'keonn') return 'set the inventory tag TTL of its HTTP service to 0'
  if (mapping === 'impinj')
    return 'start its inventory with "dual-target" or session 0, and without a reporting interval'
  return 'let it report every read: set the time between two reports of a tag to 0'
}

/** The reader posts its reads; the agent cannot command it. */
function httpIngestCapabilities(settings: HttpIngestSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: { afterMs: TAG_ABSENT_MS },
    antennas: settings.antennas,
    siren: undefined,
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    // An emergency input must be wired; a post over the network must not replace it.
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: { name: settings.link.push, secret: settings.secret },
  }
}

/** Maximum size of a body that the agent's endpoint accepts, bytes. */
export const MAX_PUSHED_BYTES = 524_288

/**
 * What the endpoint passes to the driver in place of a body with a wrong secret. It appears in the state of the device,
 * and is no sign of life: any machine of the network can cause it.
 */
export const WRONG_SECRET = Buffer.from('a request with a wrong secret\n')

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
  readonly #queue = new EventQueue()
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
        if (!WRONG_SECRET.equals(chunk)) this.#lastReceivedAt = this.#platform.clock.elapsed()
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
