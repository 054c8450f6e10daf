import { pause, retryDelays } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { isIcodeSli } from '../protocols/pcsc/icode-eas.ts'
import { pcscService } from '../transports/link-settings.ts'
import type { LinkProtocol, SharedLinks } from '../transports/shared-links.ts'
import { commandQueue } from './command-queue.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { CommandResult, DeviceCommand, ProtectionDevice } from './device.ts'
import type { Driver } from './driver.ts'
import { eventQueue } from './event-queue.ts'
import { findReader } from './pcsc/find-reader.ts'
import { startPcscd } from './pcsc/pcscd.ts'
import type { Pcscd } from './pcsc/pcscd.ts'
import { releaseEas } from './pcsc/release-eas.ts'
import { beginSession } from './pcsc/session.ts'
import type { Session } from './pcsc/session.ts'
import { pcscCapabilities, PcscSettings } from './pcsc/settings.ts'
import { tagWatch } from './pcsc/tag-watch.ts'

const MOST_RELEASES_WAITING = 8
const CLOSE_WITHIN_MS = 2_000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000

function openPcscReader(settings: PcscSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { timers } = platform
  const service = pcscService(settings.link)
  const queue = eventQueue()
  const releases = commandQueue(MOST_RELEASES_WAITING)
  const tags = tagWatch(platform, settings.ndef, queue.put)
  // Made for this device alone: each reader has its own conversation with pcscd.
  const protocol: LinkProtocol<Pcscd> = { name: 'pcsc', start: (link) => startPcscd(link, platform, service) }
  const line = deviceLink(links, settings.link, protocol)
  let reader = ''
  let session: Session | null = null

  function letGo(reason: string): void {
    session?.end(reason)
    line.leave()
  }

  /** Waits until pcscd sees the reader. */
  async function untilPlugged(pcscd: Pcscd, signal: AbortSignal, onFailure: (detail: string) => void): Promise<string> {
    for (;;) {
      const states = await pcscd.readers()
      const found = findReader(states, settings.link.pcsc, service)
      if ('name' in found) return found.name
      tags.gone()
      onFailure(found.missing)
      await pcscd.untilChange(states, signal)
      if (signal.aborted) throw signal.reason as Error
    }
  }

  async function connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    letGo('connected anew')
    const delays = retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    for (;;) {
      const member = await line.connect(signal, onFailure)
      try {
        await member.speaker.greet()
        reader = await untilPlugged(member.speaker, signal, onFailure)
        member.heard()
        return
      } catch (error) {
        line.leave()
        if (signal.aborted) throw error
        onFailure(error instanceof Error ? error.message : String(error))
        await pause(timers, delays.next().value, signal)
      }
    }
  }

  function release(tag: DeviceCommand & { kind: 'release' }, signal: AbortSignal): Promise<CommandResult> {
    const wanted = tag.tag && 'tagUid' in tag.tag ? tag.tag.tagUid : null
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
    if (!session) return Promise.resolve(result('failed', false, 'not_ready', 'the reader is not there'))
    const current = session
    return new Promise((tell) => {
      current.add({
        refuse() {
          if (signal.aborted) return result('failed', false, 'cancelled')
          if (tags.present?.uid !== wanted)
            return result('failed', false, 'not_ready', `the tag ${wanted} is not on the reader`)
          if (tags.present.technology === 'NfcV' && isIcodeSli(wanted)) return null
          return result(
            'failed',
            false,
            'not_supported',
            `the tag ${wanted} has no EAS bit that a reader can switch off`,
          )
        },
        run: (card) => releaseEas(card, wanted, signal),
        tell,
      })
    })
  }

  async function close(): Promise<void> {
    const timeUp = new AbortController()
    await Promise.race([releases.idle(), pause(timers, CLOSE_WITHIN_MS, timeUp.signal).catch(() => {})])
    timeUp.abort()
    letGo('closed')
    queue.end()
  }

  return {
    connect,
    async identify() {
      const pcscd = line.joined().speaker
      session?.end('identified anew')
      session = beginSession({ pcscd, reader, tags, timers })
      return { description: `NFC reader ${reader}` }
    },
    untilLost: () => session?.lost ?? Promise.resolve('the link was lost'),
    async execute(command, signal) {
      if (command.kind !== 'release') return result('failed', false, 'not_supported', 'a reader has no lamps or sirens')
      return releases.run(signal, () => {
        const outcome = release(command, signal)
        return { outcome, finished: outcome }
      })
    },
    events: queue.events,
    close,
  }
}

/** NFC and HF readers behind PC/SC: pcscd on Linux, the system’s own service on Windows and macOS. */
export const pcscDriver: Driver<PcscSettings, typeof PcscSettings> = {
  name: 'pcsc',
  settings: PcscSettings,
  linkUse: () => null,
  claims: () => [],
  capabilities: pcscCapabilities,
  open: openPcscReader,
}
