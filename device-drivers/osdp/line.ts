import { osdpCodec } from './protocol/frame.ts'
import type { OsdpFrame } from './protocol/frame.ts'
import type { LinkProtocol } from '../transports/shared-links.ts'
import { startExchange } from '../kit/exchange.ts'
import type { Exchange } from '../kit/exchange.ts'

/** All devices on one OSDP line. The line carries one request at a time. */
export type OsdpLine = Exchange<OsdpFrame>

/** Minimum quiet time between two frames, ms: two characters at 9600 baud (SIA OSDP 2.2, 5.7). */
const GAP_MS = 2
/** Quiet time after a lost answer, ms. A late answer also ends within this time. */
const QUARANTINE_MS = 50

/** All devices use this protocol object, so that they can share a line. */
export const OSDP_LINE: LinkProtocol<OsdpLine> = {
  name: 'OSDP',
  start: (link, _settings, platform) =>
    startExchange(
      {
        codec: osdpCodec(),
        gapMs: GAP_MS,
        quarantineMs: QUARANTINE_MS,
        // A received command is no noise, because many RS-485 adapters receive the frames that they send.
        onStray: (frame) => (frame.reply ? { bytes: frame.data.length, detail: 'a reply to no open command' } : null),
      },
      link,
      platform,
    ),
}
