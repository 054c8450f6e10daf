import { z } from 'zod'
import { LONGEST_SIGNAL_S, SIGNALS, type Finding, type Signal, setUpEnded } from './device.ts'
import type { ExclusiveResource } from './driver.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from './protocol/codec.ts'
import type { LinkProtocol } from '../transports/shared-links.ts'
import { startExchange, type Exchange, type ExchangeAnswer } from './exchange.ts'
import type { LinkSession } from './link-device.ts'
import type { NoiseReport } from './noise-report.ts'

const feedsError = { error: 'give the deviceId of the device that this reader serves' }
const minimumRssiError = { error: 'give dBm, -100 to 0, such as -45' }

/** Setting of readers: the device that receives their reads. */
export const FEEDS = {
  feeds: z.string(feedsError).min(1, feedsError).max(128, { error: 'at most 128 characters' }).optional().meta({
    description: 'device that receives what this reader reads; default: the reader is a separate device',
  }),
}

/** Setting of readers that only staff use. */
export const STAFF_CARDS = {
  staffCards: z.boolean({ error: 'use true (only staff present cards here) or false' }).default(false).meta({
    description: 'only staff present cards here: each card signs its operator in at the device of this reader',
  }),
}

/** `FEEDS` with a minimum signal, for UHF readers, which also read distant tags. */
export const FEEDS_WITH_MINIMUM_RSSI = {
  ...FEEDS,
  nearDbm: z.number(minimumRssiError).min(-100, minimumRssiError).max(0, minimumRssiError).optional().meta({
    description: 'minimum signal, not at gates: tags with a weaker signal are ignored; default: none',
  }),
}

const QUARANTINE_MS = 100

interface ReaderLineOptions<Frame> {
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

/** Common settings of UHF readers that have antennas, inputs and outputs. */

/** Schema of an integer within limits; `unit` completes the error message. */
export function boundedInt(unit: string, from: number, to: number): z.ZodInt {
  const error = `give ${unit}, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}

/** Schema of an input or output number. `what` is the purpose of that input or output, for the error message. */
type NumberSetting = (what: string) => z.ZodInt

/** Antennas by direction. `without` is the part of the description that names the effect of missing antennas. */
export function antennaSettings(antenna: z.ZodInt, without: string) {
  const list = z.array(antenna, { error: 'give a list of antennas, such as [1, 2]' }).max(64).default([])
  return (
    z
      .strictObject({ inside: list, outside: list }, { error: 'give { "inside": [1], "outside": [2] }' })
      // A gate would take each read of such an antenna for one outside, and never alarm.
      .refine(({ inside, outside }) => !inside.some((antenna) => outside.includes(antenna)), {
        error: 'each antenna is either inside or outside',
      })
      .optional()
      .meta({
        description: `which antennas face the shop and which face the exit; without it ${without}every approach counts as leaving`,
      })
  )
}

/** The outputs for signals and for a release. */
export function outputSettings(gpo: NumberSetting) {
  const lamp = z.strictObject({ gpo: gpo('lamp') }, { error: 'give { "gpo": … }' }).optional()
  const seconds = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
  return {
    siren: z
      .strictObject(
        { gpo: gpo('siren'), seconds: z.number(seconds).min(1, seconds).max(LONGEST_SIGNAL_S, seconds).default(5) },
        { error: 'give { "gpo": …, "seconds": 5 }' },
      )
      .optional(),
    amber: lamp,
    green: lamp,
    release: z
      .strictObject(
        { gpo: gpo('barrier or lock'), pulseMs: boundedInt('milliseconds', 20, 10_000).default(1_000) },
        { error: 'give { "gpo": …, "pulseMs": 1000 }' },
      )
      .optional()
      .meta({ description: 'output that is pulsed to release: a barrier or a lock' }),
  }
}

/** The inputs whose changes are reported. */
export function inputSettings(gpi: NumberSetting, example: string) {
  return {
    passageInput: gpi('passage sensor').optional().meta({ description: 'its rising edge is a passage' }),
    inputs: z
      .array(gpi('sensor'), { error: `give a list of inputs, such as ${example}` })
      .max(16)
      .default([])
      .meta({ description: 'further inputs whose changes are reported: beams, doors' }),
  }
}

interface Antennas {
  readonly antennas?: { readonly inside: readonly number[]; readonly outside: readonly number[] } | undefined
}

/** True if `antennas` is missing or names at least one antenna. */
export function hasAntennas({ antennas }: Antennas): boolean {
  return !antennas || antennas.inside.length + antennas.outside.length > 0
}

/** True if the reader sees both sides of a gate, so that the order of its reads shows the direction. */
export function hasBothSides({ antennas }: Antennas): boolean {
  return antennas !== undefined && antennas.inside.length > 0 && antennas.outside.length > 0
}

/** Warns of a session in which a tag stays silent after a read, at a reader that sees both sides of a gate. */
export function sessionWarning(session: number): Finding {
  const silence = session === 1 ? 'for up to 5 s' : 'while it stays in the field, and for seconds after it'
  return {
    code: 'reader_session',
    detail: `in session ${session} a tag is silent ${silence} after a read; if the reader queries only target A, the gate misses walks: set "session": 0`,
    isWarning: true,
  }
}

/** The configured antennas, sorted. */
export function configuredAntennas({ antennas }: Antennas): number[] {
  return sortedUnique([...(antennas?.inside ?? []), ...(antennas?.outside ?? [])])
}

/** The numbers without duplicates, sorted. */
export function sortedUnique(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}

type Outputs = Readonly<Partial<Record<Signal | 'release', { readonly gpo: number } | undefined>>>

/** The outputs of the configured signals. */
export function signalOutputs(settings: Outputs): Map<Signal, number> {
  return new Map(SIGNALS.flatMap((signal) => (settings[signal] ? [[signal, settings[signal].gpo] as const] : [])))
}

/** The outputs as exclusive resources; `where` names the reader. */
export function outputResources(settings: Outputs, where: string): ExclusiveResource[] {
  const resource = (setting: string, gpo: number): ExclusiveResource => ({
    setting: `${setting}.gpo`,
    key: `GPO ${gpo} ${where}`,
  })
  return [
    ...(settings.release ? [resource('release', settings.release.gpo)] : []),
    ...[...signalOutputs(settings)].map(([signal, gpo]) => resource(signal, gpo)),
  ]
}
