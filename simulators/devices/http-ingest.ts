import type { Cancel, Platform } from '../../policy/platform.ts'

/** The vendor's format of the body. */
export type PushFormat = 'keonn' | 'impinj'

interface PushingReaderOptions {
  readonly platform: Platform
  readonly format: PushFormat
  /** Posts a body. If `post` returns false, the reader posts the body again later. Must not reject. */
  post(body: string): Promise<boolean>
  /** Idle time after which an empty batch is posted, as Impinj readers do; default never. */
  readonly lingerMs?: number
  /**
   * Time after a reported read in which further reads of the same EPC are dropped, on any antenna, ms; default 0. See
   * "TTL" in wiki.keonn.com, HTTP service.
   */
  readonly ttlMs?: number
}

/** A usual TTL of AdvanNet's HTTP service, ms. Its default is not published. */
export const USUAL_TTL_MS = 1_000

/** A simulated reader that posts its reads: AdvanNet's HTTP service, or the webhook of an R700. */
interface PushingReader {
  see(epc: string, sighting?: { antenna?: number; rssiDbm?: number }): void
  /** Sets the error of the reader's clock, ms. */
  setClock(offsetMs: number): void
  /** Number of reads that the receiver has not accepted yet. */
  readonly waiting: number
  stop(): void
}

interface Read {
  readonly epc: string
  readonly antenna: number
  readonly rssiDbm: number
  readonly atMs: number
}

/**
 * Pause after each accepted request, ms. The reader posts all reads of one pause together (wiki.keonn.com, HTTP
 * service).
 */
const BATCH_MS = 100
const RETRY_MS = 1_000
const MAX_WAITING = 10_000
const MAX_IN_BATCH = 500

const BODIES: Readonly<Record<PushFormat, (reads: readonly Read[]) => string>> = {
  keonn: (reads) =>
    JSON.stringify({
      devid: 'AdvanReader-01',
      devmac: 'b0:d5:cc:9f:fd:f8',
      reads: reads.map(({ epc, antenna, rssiDbm, atMs }) => ({
        epc,
        antenna: String(antenna),
        rssi: String(rssiDbm),
        ts: String(atMs),
      })),
    }),
  impinj: (reads) =>
    JSON.stringify(
      reads.map(({ epc, antenna, rssiDbm, atMs }) => ({
        timestamp: new Date(atMs).toISOString(),
        hostname: 'impinj-14-00-01',
        eventType: 'tagInventory',
        tagInventoryEvent: {
          epcHex: epc,
          antennaPort: antenna,
          peakRssiCdbm: Math.round(rssiDbm * 100),
          lastSeenTime: new Date(atMs).toISOString(),
        },
      })),
    ),
}

/** Makes a reader and starts to post its reads. */
export function pushingReader({ platform, format, post, lingerMs, ttlMs = 0 }: PushingReaderOptions): PushingReader {
  const { clock, timers } = platform
  const sentAt = new Map<string, number>()
  let waiting: Read[] = []
  let offsetMs = 0
  let isSending = false
  let isStopped = false
  let cancelLinger: Cancel = () => {}

  function linger(): void {
    cancelLinger()
    if (lingerMs !== undefined && !isStopped) cancelLinger = timers.after(lingerMs, () => void send(true))
  }

  async function send(evenEmpty = false): Promise<void> {
    if (isSending || isStopped || (waiting.length === 0 && !evenEmpty)) return
    isSending = true
    const batch = waiting.slice(0, MAX_IN_BATCH)
    const isTaken = await post(BODIES[format](batch))
    if (isTaken) waiting = waiting.slice(batch.length)
    linger()
    timers.after(isTaken ? BATCH_MS : RETRY_MS, () => {
      isSending = false
      void send()
    })
  }

  linger()
  return {
    see(epc, { antenna = 1, rssiDbm = -55 } = {}) {
      const last = sentAt.get(epc)
      if (last !== undefined && clock.elapsed() - last < ttlMs) return
      sentAt.set(epc, clock.elapsed())
      waiting.push({ epc, antenna, rssiDbm, atMs: clock.wall() + offsetMs })
      if (waiting.length > MAX_WAITING) waiting = waiting.slice(-MAX_WAITING)
      void send()
    },
    setClock: (offset) => void (offsetMs = offset),
    get waiting() {
      return waiting.length
    },
    stop() {
      isStopped = true
      cancelLinger()
    },
  }
}
