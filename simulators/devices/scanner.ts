import type { Platform } from '../../policy/platform.ts'
import { lineCodec } from '../../device-drivers/protocols/scanner/lines.ts'
import type { ScannerSuffix } from '../../device-drivers/protocols/scanner/lines.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

export interface ScannerSimulatorOptions {
  readonly platform: Platform
  /** Sent behind each text; default CR. */
  readonly suffix?: ScannerSuffix
  /** STX before and ETX behind each text; default false. */
  readonly stx?: boolean
  /** Bytes sent at a time, as a slow serial line delivers them; default all at once. */
  readonly chunkBytes?: number
}

/** A simulated code scanner: what is scanned goes to everybody who is connected. */
export interface ScannerSimulator {
  /** Reads a code, as pulling the trigger would. `aim`: the identifier to send before it, such as `]Q1`. */
  scan(text: string, aim?: string): Promise<void>
  /** Sends the beginning of a text and stops. */
  halfLine(text: string): Promise<void>
  /** Sends bytes as they are: noise, or whatever else a line can carry. */
  send(bytes: Uint8Array): Promise<void>
  /** Sends random bytes without line ends. */
  garbage(bytes: number): Promise<void>
  /** Everybody who listens now. */
  readonly listeners: number
  /** Sends to this link until it ends; at most 16 at a time. */
  serve(link: ByteLink): Promise<void>
}

const MAX_LISTENERS = 16
const NEVER_ABORTED = new AbortController().signal

/** Makes a scanner. It reaches nobody until a link is served to it. */
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

  // One text after the other, however it is chopped.
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
        // A scanner takes no orders; reading shows when the other side is gone.
        for await (const _ of link.bytes) continue
      } catch {
        // Broken or closed: both end this listener.
      } finally {
        links.delete(link)
        await link.close()
      }
    },
  }
}
