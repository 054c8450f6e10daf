import { pause, retryDelays, type Platform, type Timers } from '../../policy/platform.ts'
import { isIcodeSli, easAlarmFrame, easFrame, tagAnswer } from './protocol/icode-eas.ts'
import { pcscService, PcscLink } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import { commandQueue, type ReleaseCommand } from '../kit/device-commands.ts'
import { deviceLink, type DeviceLink } from '../kit/device-link.ts'
import {
  result,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type DeviceIdentity,
  type ProtectionDevice,
} from '../kit/device.ts'
import { type Driver, DeviceId, type Capabilities } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { findReader, startPcscd, type Pcscd } from './pcscd.ts'
import { beginSession, type Session } from './session.ts'
import { tagWatch, type TagWatch } from './tag-watch.ts'
import { z } from 'zod'
import { FEEDS, STAFF_CARDS } from '../kit/reader-settings.ts'
import { statusText } from './protocol/apdu.ts'
import {
  END_SESSION,
  START_SESSION,
  SWITCH_TO_ISO15693,
  transceive,
  transparentAnswer,
} from './protocol/transparent.ts'
import type { Card } from './card.ts'

/** One NFC or HF reader of PC/SC, or one of its slots. */
const PcscSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('pcsc'),
  link: PcscLink,
  ...FEEDS,
  ...STAFF_CARDS,
  ndef: z
    .boolean({ error: 'use true (links and texts on a tag are reported as scans) or false' })
    .default(true)
    .meta({ description: 'read URI and text records from tags and report them as scans' }),
})
type PcscSettings = z.infer<typeof PcscSettings>

/** The reader releases by switching off the EAS bit of the tag in its field. */
function pcscCapabilities(settings: PcscSettings): Capabilities {
  return {
    releases: 'tag',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
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

const MAX_RELEASES_WAITING = 8
const CLOSE_WITHIN_MS = 2_000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000

/** One NFC reader. */
class PcscReader implements ProtectionDevice {
  readonly #settings: PcscSettings
  readonly #platform: Platform
  readonly #timers: Timers
  readonly #service: string
  readonly #queue = new EventQueue()
  readonly #releases = commandQueue(MAX_RELEASES_WAITING)
  readonly #tags: TagWatch
  readonly #line: DeviceLink<Pcscd>
  #reader = ''
  #session: Session | null = null
  readonly events: AsyncIterable<DeviceEvent>

  constructor(settings: PcscSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
    this.#timers = platform.timers
    this.#service = pcscService(settings.link)
    this.#tags = tagWatch(platform, settings.ndef, this.#queue.put)
    // Devices can share a link only if they use the same protocol object. Each reader needs its own connection to
    // pcscd, so each reader has its own protocol object.
    const protocol: LinkProtocol<Pcscd> = { name: 'pcsc', start: (link) => startPcscd(link, platform, this.#service) }
    this.#line = deviceLink(links, settings.link, protocol)
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#dispose('reconnected')
    const delays = retryDelays(this.#platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    for (;;) {
      const member = await this.#line.connect(signal, onFailure)
      try {
        await member.client.negotiate()
        this.#reader = await this.#untilPlugged(member.client, signal, onFailure)
        member.markResponsive()
        return
      } catch (error) {
        this.#line.leave()
        if (signal.aborted) throw error
        onFailure(error instanceof Error ? error.message : String(error))
        await pause(this.#timers, delays.next().value, signal)
      }
    }
  }

  async identify(): Promise<DeviceIdentity> {
    const pcscd = this.#line.joined().client
    this.#session?.end('identified again')
    this.#session = beginSession({ pcscd, reader: this.#reader, tags: this.#tags, timers: this.#timers })
    return { description: `NFC reader ${this.#reader}` }
  }

  untilLost(): Promise<string> {
    return this.#session?.lost ?? Promise.resolve('the link was lost')
  }

  async execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    if (command.kind !== 'release') return result('failed', false, 'not_supported', 'a reader has no lamps or sirens')
    return this.#releases.run(signal, () => {
      const outcome = this.#release(command, signal)
      return { outcome, finished: outcome }
    })
  }

  async close(): Promise<void> {
    const timeUp = new AbortController()
    await Promise.race([this.#releases.idle(), pause(this.#timers, CLOSE_WITHIN_MS, timeUp.signal).catch(() => {})])
    timeUp.abort()
    this.#dispose('closed')
    this.#queue.end()
  }

  #dispose(reason: string): void {
    this.#session?.end(reason)
    this.#line.leave()
  }

  /** Waits until pcscd lists the reader. */
  async #untilPlugged(pcscd: Pcscd, signal: AbortSignal, onFailure: (detail: string) => void): Promise<string> {
    for (;;) {
      const states = await pcscd.readers()
      const found = findReader(states, this.#settings.link.pcsc, this.#service)
      if ('name' in found) return found.name
      this.#tags.gone()
      onFailure(found.missing)
      await pcscd.untilChange(states, signal)
      if (signal.aborted) throw signal.reason as Error
    }
  }

  #release({ tag }: ReleaseCommand, signal: AbortSignal): Promise<CommandResult> {
    const wanted = tag && 'tagUid' in tag ? tag.tagUid : null
    if (wanted === null) {
      return Promise.resolve(
        result(
          'failed',
          false,
          'not_supported',
          'a reader has no output; name the tagUid of the tag whose EAS bit is to go off',
        ),
      )
    }
    if (!this.#session) return Promise.resolve(result('failed', false, 'not_ready', 'the reader is not there'))
    const current = this.#session
    return new Promise((resolve) => {
      current.add({
        precheck: () => {
          if (signal.aborted) return result('failed', false, 'cancelled')
          if (this.#tags.present?.uid !== wanted)
            return result('failed', false, 'not_ready', `the tag ${wanted} is not on the reader`)
          if (this.#tags.present.technology === 'NfcV' && isIcodeSli(wanted)) return null
          return result(
            'failed',
            false,
            'not_supported',
            `the tag ${wanted} has no EAS bit that a reader can switch off`,
          )
        },
        run: (card) => releaseEas(card, wanted, signal),
        resolve,
      })
    })
  }
}

/**
 * NFC and HF readers with PC/SC: pcscd on Linux (pcsc-lite 1.8.24 or later), the smart-card service on Windows and
 * macOS. EAS release by ICODE commands (NXP SLIX data sheet) in a transparent session (PC/SC part 3, supplement 2.02).
 */
export const pcscDriver: Driver<PcscSettings, typeof PcscSettings> = {
  name: 'pcsc',
  settings: PcscSettings,
  linkUse: () => null,
  exclusiveResources: () => [],
  capabilities: pcscCapabilities,
  open: (settings, links, platform) => new PcscReader(settings, links, platform),
}

const lost = (why: string) => result('unknown', true, 'answer_lost', why)
const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Sends a frame to the tag. Returns the tag's answer, null if no complete answer came, or the reader's refusal. */
async function exchange(
  card: Card,
  frame: Uint8Array,
): Promise<{ readonly frame: Uint8Array | null } | { readonly refused: string }> {
  const answer = transparentAnswer(await card.transmit(transceive(frame)))
  if (answer.kind === 'refused') return { refused: statusText(answer.status) }
  return { frame: answer.kind === 'done' ? answer.frame : null }
}

/**
 * True if the tag sends its EAS sequence, which means that its EAS bit is on. Null if the reader refuses the request.
 */
async function isEasOn(card: Card, uid: string): Promise<boolean | null> {
  try {
    const exchanged = await exchange(card, easAlarmFrame(uid))
    return 'refused' in exchanged ? null : exchanged.frame !== null && tagAnswer(exchanged.frame)?.refused === null
  } catch {
    return false
  }
}

async function resetEas(card: Card, uid: string): Promise<CommandResult> {
  const exchanged = await exchange(card, easFrame('reset', uid)).catch((error: unknown) => lost(text(error)))
  if ('outcome' in exchanged) return exchanged
  if ('refused' in exchanged) {
    // If the tag's EAS bit is off, the tag may have received the command before the reader refused.
    const why = `the reader: ${exchanged.refused}`
    return (await isEasOn(card, uid)) === false ? lost(why) : result('failed', true, 'refused', why)
  }
  const answer = exchanged.frame && tagAnswer(exchanged.frame)
  if (answer?.refused) return result('failed', true, 'refused', answer.refused)
  if (await isEasOn(card, uid)) return result('failed', true, 'no_confirmation', 'the EAS bit of the tag is still on')
  return answer
    ? result('confirmed', true, 'acknowledged', 'the tag has switched its EAS bit off')
    : lost('the tag did not answer')
}

/**
 * Switches the EAS bit of an ICODE SLI tag off, in a transparent session of the reader. The outcome is `confirmed` if
 * the tag answers and no longer sends its EAS sequence. Sends the command to the tag once. Rejects only if this command
 * was not sent.
 */
async function releaseEas(card: Card, uid: string, signal: AbortSignal): Promise<CommandResult> {
  const start = transparentAnswer(await card.transmit(START_SESSION))
  if (start.kind !== 'done') {
    return result(
      'failed',
      false,
      'not_supported',
      'this reader passes no commands through to tags (PC/SC transparent session)',
    )
  }
  try {
    const turned = transparentAnswer(await card.transmit(SWITCH_TO_ISO15693))
    if (turned.kind !== 'done')
      return result('failed', false, 'not_supported', 'this reader passes no ISO 15693 commands through')
    if (signal.aborted) return result('failed', false, 'cancelled')
    return await resetEas(card, uid)
  } finally {
    await card.transmit(END_SESSION).catch(() => {})
  }
}
