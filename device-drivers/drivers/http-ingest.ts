import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { mapper } from '../protocols/ingest/mapping.ts'
import type { Mapped } from '../protocols/ingest/mapping.ts'
import { jsonLines } from '../protocols/json-lines.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { LinkProtocol, SharedLinks, Speaker } from '../transports/shared-links.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { ProtectionDevice } from './device.ts'
import type { Driver } from './driver.ts'
import { eventQueue } from './event-queue.ts'
import { httpIngestCapabilities, HttpIngestSettings } from './http-ingest/settings.ts'
import { readerClock } from './llrp/reader-clock.ts'
import { noiseReport } from './noise-report.ts'
import { readOf } from './tag-read.ts'

/** One body, as the agent's endpoint lets it through, in one line. */
export const MOST_PUSHED_BYTES = 524_288

const LOOK_EVERY_MS = 1_000

function openIngest(settings: HttpIngestSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { timers } = platform
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const read = mapper(settings.mapping)
  const clock = readerClock(platform.clock)
  const silenceMs = settings.silentAfterSeconds === undefined ? Infinity : settings.silentAfterSeconds * 1_000
  let watching = new AbortController()
  let heardAt = platform.clock.elapsed()
  let isTimed = false

  function tell({ sightings, faults, strange }: Mapped): void {
    for (const detail of faults) queue.put({ type: 'fault', detail })
    if (strange > 0)
      noise.add({ bytes: strange, detail: 'reads that are none; does the mapping fit what the reader sends?' })
    const arrived = settings.clock === 'arrival' ? { seenAtMs: platform.clock.elapsed() } : {}
    queue.putReads(sightings.map((sighting) => ({ ...readOf(sighting, clock), ...arrived })))
  }

  async function listen(link: ByteLink): Promise<string> {
    const lines = jsonLines(MOST_PUSHED_BYTES + 1)
    try {
      for await (const chunk of link.bytes) {
        heardAt = platform.clock.elapsed()
        for (const body of lines.push(chunk)) tell(read(body))
        noise.add(lines.takeNoise())
      }
      return 'nobody takes what is pushed any more'
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  // Made for this device alone: each has its own address.
  const protocol: LinkProtocol<Speaker> = { name: 'http-ingest', start: (link) => ({ ended: listen(link) }) }

  const line = deviceLink(links, settings.link, protocol)

  const silentMs = () => platform.clock.elapsed() - heardAt
  const silence = () =>
    `nothing was pushed for ${settings.silentAfterSeconds} s; is the reader on, and does it send to this agent?`

  async function untilSilent(signal: AbortSignal): Promise<string> {
    while (silentMs() < silenceMs) {
      if (signal.aborted || silenceMs === Infinity) return new Promise(() => {})
      await pause(timers, Math.max(1, silenceMs - silentMs()), signal).catch(() => {})
    }
    return silence()
  }

  function untilLost(): Promise<string> {
    watching.abort()
    const now = new AbortController()
    watching = now
    return Promise.race([line.lost(), untilSilent(now.signal)]).finally(() => now.abort())
  }

  return {
    async connect(signal, onFailure) {
      // A reader that was silent goes on at the same address: nothing it sends meanwhile may be lost.
      if (line.member) return
      if (!isTimed) {
        // Readers have their time from the network, as this machine has; what they send shows whether that is so.
        clock.set({ utcUs: platform.clock.wall() * 1_000 })
        isTimed = true
      }
      await line.connect(signal, onFailure)
    },
    // A reader that calls cannot be asked: before it has, an open address is all that can be known.
    async identify(signal) {
      while (silentMs() >= silenceMs) {
        await pause(timers, LOOK_EVERY_MS, signal).catch(() => {
          throw new Error(silence())
        })
      }
      line.joined().heard()
      return { description: `reader that sends to /ingest/${settings.link.push}` }
    },
    untilLost,
    execute: async () => result('failed', false, 'not_supported', 'a reader that sends its reads has no outputs here'),
    events: queue.events,
    async close() {
      watching.abort()
      line.leave()
      noise.stop()
      queue.end()
    },
  }
}

/** Readers that send their reads by HTTP: Keonn AdvanNet, webhooks of Impinj readers, others by mapping. */
export const httpIngestDriver: Driver<HttpIngestSettings, typeof HttpIngestSettings> = {
  name: 'http-ingest',
  settings: HttpIngestSettings,
  linkUse: () => null,
  claims: () => [],
  capabilities: httpIngestCapabilities,
  open: openIngest,
}
