import type { Platform } from '../../policy/platform.ts'
import { lineCodec } from '../../device-drivers/scanner/protocol/lines.ts'
import type { ScannerSuffix } from '../../device-drivers/scanner/protocol/lines.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

export interface ScannerSimulatorOptions {
  readonly platform: Platform
  /** Suffix of each text; default CR. */
  readonly suffix?: ScannerSuffix
  /** True if STX and ETX enclose each text; default false. */
  readonly stx?: boolean
  /** Maximum number of bytes per chunk of a text, to simulate a slow serial line; default: all bytes in one chunk. */
  readonly chunkBytes?: number
}

/** A simulated code scanner; all connected clients receive its scans. */
export interface ScannerSimulator {
  /** Scans a code. `aim` is a symbology identifier that is sent before the text, such as `]Q1`. */
  scan(text: string, aim?: string): Promise<void>
  /** Sends an incomplete line. */
  halfLine(text: string): Promise<void>
  /** Sends raw bytes. */
  send(bytes: Uint8Array): Promise<void>
  /** Sends random bytes without line ends. */
  garbage(bytes: number): Promise<void>
  /** Number of connected clients. */
  readonly listeners: number
  /** Serves a link until it ends; at most 16 at a time. */
  serve(link: ByteLink): Promise<void>
}

const MAX_LISTENERS = 16
const NEVER_ABORTED = new AbortController().signal

/** Makes a scanner. Pass each new link to the scanner's `serve`. */
export function scannerSimulator(options: ScannerSimulatorOptions): ScannerSimulator {
  const codec = lineCodec({ suffix: options.suffix ?? 'CR', stx: options.stx ?? false, silenceEndsLine: false })
  const links = new Set<ByteLink>()
  let order: Promise<void> = Promise.resolve()

  async function sendNow(bytes: Uint8Array): Promise<void> {
    const size = options.chunkBytes ?? Math.max(1, bytes.length)
    for (let at = 0; at < bytes.length; at += size) {
      const chunk = bytes.subarray(at, at + size)
      await Promise.all([...links].map((link) => link.write(chunk, NEVER_ABORTED).catch(() => {})))
    }
  }

  // Sends the texts one after the other, so that their chunks do not mix.
  function send(bytes: Uint8Array): Promise<void> {
    order = order.then(() => sendNow(bytes))
    return order
  }

  return {
    scan: (text, aim = '') => send(codec.encode(aim + text)),
    halfLine: (text) => send(new TextEncoder().encode(text)),
    send,
    garbage: (bytes) => send(options.platform.random.bytes(bytes).map((byte) => (byte < 0x20 ? byte | 0x80 : byte))),
    get listeners() {
      return links.size
    },
    async serve(link) {
      if (links.size >= MAX_LISTENERS) return link.close()
      links.add(link)
      try {
        // A scanner ignores input; reading only detects that the client is gone.
        for await (const _ of link.bytes) continue
      } catch {
        // Ignores the error, because the client is gone.
      } finally {
        links.delete(link)
        await link.close()
      }
    },
  }
}
