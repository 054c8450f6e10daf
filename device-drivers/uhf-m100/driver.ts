import { type Platform, pause } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { m100Codec, type M100Frame } from './protocol/frame.ts'
import {
  decodeTag,
  M100,
  m100Command,
  M100_INFORMATION,
  M100_REGIONS,
  NO_TAG,
  pollMany,
  refusalOf,
  refusalText,
  setPower,
  applySelection,
  changeEas,
  killTag,
  selectTag,
  tagOfAnswer,
} from './protocol/messages.ts'
import { linkKey, type LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import { type RunningCommand, completedCommand, type ReleaseCommand } from '../kit/device-commands.ts'
import { result, setUpLimit, type DeviceIdentity, type CommandResult } from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import type { Exchange, ExchangeAnswer } from '../kit/exchange.ts'
import {
  startContinuousReading,
  type ContinuousReading,
  tagPresence,
  type TagPresence,
} from '../kit/continuous-reading.ts'
import { linkDevice, type LinkDeviceOptions, type LinkSession } from '../kit/link-device.ts'
import { m100Capabilities, M100Settings } from './settings.ts'
import { noiseReport, type NoiseReport } from '../kit/noise-report.ts'
import { frameOrThrow, readerLine } from '../kit/reader-settings.ts'

/** Sends a command. `pollMany` has no answer, because the reader sends tags instead. */
type SendM100 = (
  frame: M100Frame,
  options?: { signal?: AbortSignal; onSend?: () => void },
) => Promise<ExchangeAnswer<M100Frame>>

/**
 * True if `frame` answers `command`: it has the same code, or is a refusal. A refusal "no tag" answers a running poll
 * instead. A refusal never answers `stop`. Firmware answers `setSelectMode` with the code of `setSelect`.
 */
function isM100Answer(frame: M100Frame, command: number): boolean {
  if (frame.type !== 'answer') return false
  if (frame.command === command) return true
  if (command === M100.setSelectMode && frame.command === M100.setSelect) return true
  const refusal = refusalOf(frame)
  return refusal !== null && refusal !== NO_TAG && command !== M100.stop
}

/** Sends commands on an exchange, and calls `onAnswer` for each answer. */
function m100Requests(exchange: Exchange<M100Frame>, timeoutMs: number, onAnswer: () => void): SendM100 {
  return async (frame, options = {}) => {
    const waits = frame.command !== M100.pollMany
    const isAnswer = waits ? { isAnswer: (reply: M100Frame) => isM100Answer(reply, frame.command) } : {}
    const answer = await exchange.request({ frame, target: 'the reader', timeoutMs, ...isAnswer, ...options })
    if (answer.kind === 'answered') onAnswer()
    return answer
  }
}

interface DeactivateOptions {
  readonly request: SendM100
  readonly polling: ContinuousReading
  readonly presence: TagPresence
  readonly platform: Platform
  readonly settings: NonNullable<M100Settings['deactivate']>
  /** Upper-case hex. */
  readonly epc: string
  /** After `signal` aborts, no further command begins. */
  readonly signal: AbortSignal
  onFault(detail: string): void
}

/** Code "no such tag". The reader also reports this code for a tag that died without an answer. */
const KILL_FAILED = 0x12
/** Code for a tag that did not answer the command to change its EAS bit. */
const EAS_FAILED = 0x1b
/** Answer of the reader to a select command that it executed. */
const ACCEPTED = 0
/** Time in which a living tag is read again, ms. */
const REREAD_MS = 500

/**
 * Checks a tag that did not answer the kill command. A tag that is read again is alive; otherwise the outcome is
 * unknown.
 */
async function checkStillAlive(o: DeactivateOptions, sinceMs: number): Promise<CommandResult> {
  await pause(o.platform.timers, REREAD_MS)
  const seen = o.presence.lastSeenMs({ epc: o.epc })
  if (seen !== null && seen > sinceMs) return result('failed', true, 'no_confirmation', 'the tag still answers')
  return result(
    'unknown',
    true,
    'answer_lost',
    'the tag did not answer and is not read any more: killed, or taken away',
  )
}

/** Selects the tag. Returns why that failed, or null. */
async function select(o: DeactivateOptions): Promise<CommandResult | null> {
  // The mode comes first: without it the reader may send the command to any tag in the field.
  for (const frame of [applySelection(), selectTag(o.epc)]) {
    const answer = await o.request(frame, { signal: o.signal })
    if (o.signal.aborted) return result('failed', false, 'cancelled')
    if (answer.kind !== 'answered')
      return result('failed', false, 'not_ready', answer.kind === 'lost' ? answer.detail : 'no answer')
    const refusal = refusalOf(answer.frame)
    if (refusal !== null || answer.frame.parameters[0] !== ACCEPTED) {
      const why = refusal === null ? 'it reports a failure' : refusalText(refusal)
      return result('failed', false, 'not_supported', `the reader does not select this tag: ${why}`)
    }
  }
  return null
}

async function command(o: DeactivateOptions): Promise<CommandResult> {
  const unselected = await select(o)
  if (unselected) return unselected
  const { method, password } = o.settings
  const frame = method === 'kill' ? killTag(password) : changeEas(password, false)
  const answer = await o.request(frame, { signal: o.signal })
  if (answer.kind === 'lost') {
    if (answer.possiblySent) return result('unknown', true, 'answer_lost', answer.detail)
    return result('failed', false, o.signal.aborted ? 'cancelled' : 'not_ready', answer.detail)
  }
  if (answer.kind === 'sent') return result('unknown', true, 'answer_lost', 'no answer')
  const refusal = refusalOf(answer.frame)
  if (refusal === KILL_FAILED && method === 'kill') {
    await o.polling.resume()
    return checkStillAlive(o, o.platform.clock.elapsed()).finally(() => o.polling.suspend())
  }
  if (refusal === EAS_FAILED && method !== 'kill') return result('unknown', true, 'answer_lost', refusalText(refusal))
  if (refusal !== null) return result('failed', true, 'refused', refusalText(refusal))
  const named = tagOfAnswer(answer.frame)
  if (named === o.epc) return result('confirmed', true, 'acknowledged')
  o.onFault(`the reader reports that it changed ${named ?? 'a tag without an EPC'} instead of ${o.epc}`)
  return result('unknown', true, 'answer_lost', `the answer is about ${named ?? 'no tag'}`)
}

/** Kills one tag or clears its EAS bit, once. Never rejects. */
async function deactivateTag(o: DeactivateOptions): Promise<CommandResult> {
  if (!o.presence.has({ epc: o.epc }))
    return result('failed', false, 'not_ready', `the tag ${o.epc} does not lie on the reader`)
  const isStopped = await o.polling.suspend()
  try {
    if (o.signal.aborted) return result('failed', false, 'cancelled')
    if (!isStopped) return result('failed', false, 'not_ready', 'the reader does not answer')
    return await command(o)
  } finally {
    await o.polling.resume()
  }
}

type Line = Exchange<M100Frame>

/** Longest EPC that a select command can name, hex digits; the length field of the command has 8 bits. */
const LONGEST_EPC_DIGITS = 62

const MAX_POLLS = 65_535
/** Time without data after which polling is restarted, ms. A poll that finds no tag takes about 10 ms. */
const QUIET_MS = 500

const printable = (bytes: Uint8Array): string =>
  String.fromCharCode(...bytes.subarray(0, 64))
    .replace(/[^\x20-\x7e]/g, '')
    .trim()

/** One M100 reader. */
class M100Reader implements LinkDeviceOptions<Line> {
  readonly #settings: M100Settings
  readonly links: SharedLinks
  readonly platform: Platform
  readonly queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #presence: TagPresence
  #polling: ContinuousReading | null = null
  #request: SendM100 | null = null
  readonly #setUp: { frame: M100Frame; what: string }[]
  readonly protocol: LinkProtocol<Exchange<M100Frame>>
  readonly link: LinkSettings
  readonly setUpLimitMs: number

  constructor(settings: M100Settings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.links = links
    this.platform = platform
    this.#noise = noiseReport(platform, this.queue.put)
    this.#presence = tagPresence({
      platform,
      repeatMs: settings.repeatMs,
      goneMs: settings.goneMs,
      emit: this.queue.put,
    })
    this.#setUp = [
      ...(settings.region
        ? [{ frame: m100Command(M100.setRegion, [M100_REGIONS[settings.region]]), what: `region ${settings.region}` }]
        : []),
      ...(settings.powerDbm === undefined
        ? []
        : [{ frame: setPower(settings.powerDbm), what: `a power of ${settings.powerDbm} dBm` }]),
    ]
    this.protocol = readerLine({
      name: 'M100 reader',
      codec: () => m100Codec('host'),
      onStray: (frame) => this.#onStray(frame),
      noise: this.#noise,
      platform,
    })
    this.link = settings.link
  }

  async begin(session: LinkSession<Line>, signal: AbortSignal): Promise<DeviceIdentity> {
    this.#polling = null
    const request = m100Requests(session.client, this.#settings.requestTimeoutMs, () => this.#polling?.noteActivity())

    const requestOrThrow = async (frame: M100Frame, what: string): Promise<M100Frame> => {
      const answer = await request(frame, { signal })
      const reply = frameOrThrow(answer, session, signal, what)
      const refusal = refusalOf(reply)
      if (refusal !== null) {
        throw new Error(
          `the reader refuses ${what}: ${refusalText(refusal)}; check the settings of ${this.#settings.deviceId}`,
        )
      }
      return reply
    }

    // The reader may still poll because of an earlier session; the tags that it sends are no answers.
    await requestOrThrow(m100Command(M100.stop), 'to stop')
    const hardware = await requestOrThrow(
      m100Command(M100.information, [M100_INFORMATION.hardware]),
      'to report its model',
    )
    const software = await requestOrThrow(
      m100Command(M100.information, [M100_INFORMATION.software]),
      'to report its version',
    )
    for (const { frame, what } of this.#setUp) await requestOrThrow(frame, what)
    this.#request = request
    this.#polling = startContinuousReading({
      platform: this.platform,
      quietMs: QUIET_MS,
      over: session.over,
      stop: () => request(m100Command(M100.stop)),
      start: async (isWanted) => {
        // Writes the settings again, because the reader loses them at a short power failure.
        for (const { frame } of this.#setUp) await request(frame)
        return isWanted() ? request(pollMany(MAX_POLLS)) : undefined
      },
      onUnresponsive: session.markUnresponsive,
    })
    await this.#polling.resume()
    const model = printable(hardware.parameters.subarray(1))
    const firmwareVersion = printable(software.parameters.subarray(1))
    return {
      description: `UHF reader ${model} at ${linkKey(this.#settings.link)}`,
      ...(firmwareVersion ? { firmwareVersion } : {}),
    }
  }

  release({ tag }: ReleaseCommand, _session: LinkSession<Line>, signal: AbortSignal): RunningCommand {
    const failed = (text: string) => completedCommand(result('failed', false, 'not_supported', text))
    const { deactivate } = this.#settings
    if (!deactivate || !this.#request || !this.#polling)
      return failed('this reader only reads; add "deactivate" to its settings')
    if (!tag || !('epc' in tag)) return failed('a tag is deactivated by its EPC, and the request has none')
    const epc = tag.epc.toUpperCase()
    if (epc.length > LONGEST_EPC_DIGITS) return failed('an EPC this long cannot be selected')
    const onFault = (detail: string) => this.queue.put({ type: 'fault', detail })
    const outcome = deactivateTag({
      request: this.#request,
      polling: this.#polling,
      presence: this.#presence,
      platform: this.platform,
      settings: deactivate,
      epc,
      signal,
      onFault,
    })
    return { outcome, finished: outcome }
  }

  /** Switches the field off before the agent stops. */
  async switchOff(session: LinkSession<Line> | null): Promise<void> {
    if (session) await this.#request?.(m100Command(M100.stop))
  }

  stopped(): void {
    this.#noise.stop()
    this.#presence.stop()
  }

  #onStray(frame: M100Frame): Noise | null {
    this.#polling?.noteActivity()
    const tag = decodeTag(frame)
    if (tag) {
      this.#noise.understood()
      this.#presence.seen([{ tag: { epc: tag.epc }, rssiDbm: tag.rssiDbm, seenAtMs: this.platform.clock.elapsed() }])
      return null
    }
    return refusalOf(frame) === NO_TAG
      ? null
      : {
          bytes: frame.parameters.length,
          detail: 'a frame that answers nothing',
          ...(frame.type === 'notice' && { sample: frame.parameters }),
        }
  }
}

/**
 * UHF pads and modules with the M100 and QM100 chips (YRM100, JRD-4035, R200), by MagicRF's "M100 & QM100 firmware
 * manual".
 */
export const m100Driver: Driver<M100Settings, typeof M100Settings> = {
  name: 'uhf-m100',
  settings: M100Settings,
  linkUse: () => null,
  exclusiveResources: () => [],
  capabilities: m100Capabilities,
  open: (settings, links, platform) => linkDevice(new M100Reader(settings, links, platform)),
}
