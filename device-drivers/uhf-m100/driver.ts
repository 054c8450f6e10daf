import type { Platform } from '../../policy/platform.ts'
import type { Noise } from '../kit/protocol/codec.ts'
import { m100Codec } from './protocol/frame.ts'
import type { M100Frame } from './protocol/frame.ts'
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
} from './protocol/messages.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from '../kit/command-queue.ts'
import { result, setUpLimit } from '../kit/device.ts'
import type { DeviceIdentity } from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { eventQueue } from '../kit/event-queue.ts'
import type { Exchange } from '../kit/exchange.ts'
import { startContinuousReading } from '../kit/continuous-reading.ts'
import type { ContinuousReading } from '../kit/continuous-reading.ts'
import { completedCommand } from '../kit/device-commands.ts'
import type { ReleaseCommand } from '../kit/device-commands.ts'
import { linkDevice } from '../kit/link-device.ts'
import type { LinkDeviceOptions, LinkSession } from '../kit/link-device.ts'
import { m100Requests } from './requests.ts'
import type { SendM100 } from './requests.ts'
import { deactivateTag } from './deactivate.ts'
import { m100Capabilities, M100Settings } from './settings.ts'
import { noiseReport } from '../kit/noise-report.ts'
import type { NoiseReport } from '../kit/noise-report.ts'
import { frameOrThrow, readerLine } from '../kit/reader-line.ts'
import { tagPresence } from '../kit/tag-presence.ts'
import type { TagPresence } from '../kit/tag-presence.ts'

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
  readonly queue = eventQueue()
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
    if (!tag || !('epc' in tag)) return failed('a tag is deactivated by its EPC, and none was given')
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
