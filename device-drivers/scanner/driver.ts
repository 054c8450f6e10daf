import { z } from 'zod'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { lineCodec } from './protocol/lines.ts'
import { splitSymbology } from '../../policy/gs1/symbology.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import { linkKey, LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'
import { type Capabilities, DeviceId, type Driver } from '../kit/driver.ts'
import type { ProtectionDevice } from '../kit/device.ts'
import { EventQueue, repeatFilter } from '../kit/event-queue.ts'
import { FEEDS, STAFF_CARDS } from '../kit/reader-settings.ts'
import { linkDevice } from '../kit/link-device.ts'
import { noiseReport } from '../kit/noise-report.ts'

const interByte = { error: 'give milliseconds, 5 to 1000' }
const duplicate = { error: 'give milliseconds, 0 (every read counts) to 60000' }

/** One code scanner on a serial line (USB-COM, RS-232) or a serial device server. */
const ScannerSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('scanner'),
  link: LinkSettings,
  ...FEEDS,
  ...STAFF_CARDS,
  suffix: z
    .enum(['any', 'CR', 'LF', 'CRLF', 'TAB'], {
      error: 'use "CR", "LF", "CRLF" or "TAB" as set on the scanner, or leave it out for CR and LF',
    })
    .default('any'),
  stx: z
    .boolean({ error: 'use true when the scanner puts STX before and ETX behind each text, else false' })
    .default(false),
  interByteMs: z
    .int(interByte)
    .min(5, interByte)
    .max(1_000, interByte)
    .optional()
    .meta({ description: 'a pause this long ends a text, for scanners without a suffix' }),
  duplicateMs: z.int(duplicate).min(0, duplicate).max(60_000, duplicate).default(500),
})
type ScannerSettings = z.infer<typeof ScannerSettings>

/** A scanner only sends texts, to its own lane or to the device that it feeds. */
function scannerCapabilities(settings: ScannerSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: undefined,
    antennas: undefined,
    siren: undefined,
    feeds: settings.feeds,
    staffCards: settings.staffCards,
    minimumRssiDbm: undefined,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}

/** Time after which an incomplete line is discarded, ms. */
const HALF_LINE_MS = 1_000

function openScanner(settings: ScannerSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const queue = new EventQueue()
  const noise = noiseReport(platform, queue.put)
  const isRepeat = repeatFilter(platform.clock, settings.duplicateMs)

  function onLines(lines: readonly string[]): void {
    if (lines.length > 0) noise.understood()
    for (const line of lines) if (!isRepeat(line)) queue.put({ type: 'scan', ...splitSymbology(line) })
  }

  async function listen(link: ByteLink): Promise<string> {
    const codec = lineCodec({
      suffix: settings.suffix,
      stx: settings.stx,
      silenceEndsLine: settings.interByteMs !== undefined,
    })
    let cancel: Cancel = () => {}
    const silence = () => {
      onLines(codec.silence())
      noise.add(codec.takeNoise())
    }
    try {
      for await (const chunk of link.bytes) {
        cancel()
        onLines(codec.push(chunk))
        noise.add(codec.takeNoise())
        if (codec.held > 0) cancel = platform.timers.after(settings.interByteMs ?? HALF_LINE_MS, silence)
      }
      return 'the device closed the link'
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      cancel()
    }
  }

  // Devices can share a link only if they use the same protocol object. A scanner must not share its link, so each
  // scanner has its own protocol object.
  const protocol: LinkProtocol<ProtocolClient> = { name: 'scanner', start: (link) => ({ ended: listen(link) }) }

  return linkDevice({
    link: settings.link,
    links,
    platform,
    queue,
    protocol,
    // A scanner answers no requests, so until the first scan the agent only knows that the link is open.
    begin: async () => ({ description: `scanner at ${linkKey(settings.link)}` }),
    stopped: noise.stop,
  })
}

/**
 * Serial code scanners, with AIM symbology identifiers (ISO/IEC 15424). A line has at most 4,096 bytes. Keyboard wedges
 * are not supported.
 */
export const scannerDriver: Driver<ScannerSettings, typeof ScannerSettings> = {
  name: 'scanner',
  settings: ScannerSettings,
  linkUse: () => null,
  exclusiveResources: () => [],
  capabilities: scannerCapabilities,
  open: openScanner,
}
