import type { Platform } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from '../protocols/codec.ts'
import type { LinkProtocol } from '../transports/shared-links.ts'
import { startExchange } from './exchange.ts'
import type { Exchange, ExchangeAnswer } from './exchange.ts'
import type { LinkSession } from './link-device.ts'
import type { NoiseReport } from './noise-report.ts'

const QUARANTINE_MS = 100

export interface ReaderLineOptions<Frame> {
  /** For a person, such as `M100 reader`. */
  readonly name: string
  readonly codec: () => ResyncingCodec<Frame>
  /** A frame that answers nothing: a tag, a sign of life, or noise, which is returned. */
  onStray(frame: Frame): Noise | null
  readonly noise: NoiseReport
  readonly platform: Platform
}

/** The line of a serial reader that answers what it is asked and tells tags in between. Made for one device alone: a reader shares its line with nobody. */
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

/** The frame of an answer, while a device is identified. Throws when there is none; the session then ends as silent. */
export function frameOrThrow<Frame>(
  answer: ExchangeAnswer<Frame>,
  session: LinkSession<Exchange<Frame>>,
  signal: AbortSignal,
): Frame {
  if (signal.aborted) throw signal.reason as Error
  if (answer.kind !== 'answered') {
    const detail = answer.kind === 'lost' ? answer.detail : 'no answer'
    session.markUnresponsive(detail)
    throw new Error(detail)
  }
  session.markResponsive()
  return answer.frame
}
