import type { Platform } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from './protocol/codec.ts'
import type { LinkProtocol } from '../transports/shared-links.ts'
import { setUpEnded } from './device.ts'
import { startExchange } from './exchange.ts'
import type { Exchange, ExchangeAnswer } from './exchange.ts'
import type { LinkSession } from './link-device.ts'
import type { NoiseReport } from './noise-report.ts'

const QUARANTINE_MS = 100

export interface ReaderLineOptions<Frame> {
  /** Name for a person, such as `M100 reader`. */
  readonly name: string
  readonly codec: () => ResyncingCodec<Frame>
  /** Called for a frame that is no answer: a tag, a keepalive or noise. Returns the noise, or null. */
  onStray(frame: Frame): Noise | null
  readonly noise: NoiseReport
  readonly platform: Platform
}

/**
 * Makes the protocol of a serial reader that answers requests and also sends tags by itself. Devices cannot share the
 * line of such a reader.
 */
export function readerLine<Frame>({
  name,
  codec,
  onStray,
  noise,
  platform,
}: ReaderLineOptions<Frame>): LinkProtocol<Exchange<Frame>> {
  return {
    name,
    start(link) {
      const exchange = startExchange({ codec: codec(), gapMs: 0, quarantineMs: QUARANTINE_MS, onStray }, link, platform)
      exchange.onNoise(noise.add)
      return exchange
    },
  }
}

/**
 * Returns the frame of an answer during identification. If there is no answer, ends the session and throws. `what` names
 * what the reader was to do.
 */
export function frameOrThrow<Frame>(
  answer: ExchangeAnswer<Frame>,
  session: LinkSession<Exchange<Frame>>,
  signal: AbortSignal,
  what = 'to answer',
): Frame {
  if (signal.aborted) throw setUpEnded(`the reader ${what}`, signal)
  if (answer.kind !== 'answered') {
    const detail = answer.kind === 'lost' ? answer.detail : 'no answer'
    session.markUnresponsive(detail)
    throw new Error(detail)
  }
  session.markResponsive()
  return answer.frame
}
