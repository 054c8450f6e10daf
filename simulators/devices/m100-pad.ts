import type { Cancel, Platform } from '../../policy/platform.ts'
import { bytesOfHex, hexOfBytes } from '../../device-drivers/protocols/hex.ts'
import { m100Codec } from '../../device-drivers/protocols/m100/frame.ts'
import type { M100Frame } from '../../device-drivers/protocols/m100/frame.ts'
import { M100, M100_INFORMATION, NO_TAG } from '../../device-drivers/protocols/m100/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults, sendQuietly } from './answer-faults.ts'
import { faultSwitches } from './faults.ts'
import type { FaultSwitches } from './faults.ts'

/** A simulated UHF tag. */
export interface SimulatedTag {
  /** Upper-case hex. */
  readonly epc: string
  readonly rssiDbm?: number
  /** 8 hex digits; default all zero, and then it cannot be killed. */
  readonly killPassword?: string
  /** 8 hex digits; default all zero. */
  readonly accessPassword?: string
}

interface Tag extends Required<SimulatedTag> {
  alive: boolean
  eas: boolean
}

export interface M100PadOptions {
  readonly platform: Platform
  /** From one poll to the next, ms; default 10. */
  readonly pollMs?: number
  /** Most dBm that it takes; default 26. */
  readonly mostDbm?: number
}

/** A simulated UHF pad with an M100 chip. */
export interface M100Pad {
  /** Lays a tag down; one with the same EPC is replaced. */
  put(tag: SimulatedTag): void
  take(epc: string): void
  /** The tag as it is now, also when it was taken away. */
  tag(epc: string): { readonly alive: boolean; readonly eas: boolean } | null
  /** Kills and changes of EAS bits that were carried out, oldest first; the last 1,000. */
  readonly done: readonly { readonly what: 'kill' | 'eas'; readonly epc: string }[]
  readonly powerDbm: number
  readonly polling: boolean
  /** Answers are refused with an `exception` fault's code. */
  readonly faults: FaultSwitches
  /** As when its power fails for a moment: it polls no more and has forgotten its power and what was selected. */
  restart(): void
  /** Answers on this link until it ends. */
  serve(link: ByteLink): Promise<void>
}

const TEXTS: Readonly<Record<number, string>> = {
  [M100_INFORMATION.hardware]: 'M100 26dBm V1.0',
  [M100_INFORMATION.software]: 'V2.3.5',
  [M100_INFORMATION.maker]: 'MagicRf',
}
const MOST_DONE = 1_000
const MOST_TAGS = 1_000
const OK = Uint8Array.of(0)

const ascii = (kind: number, text: string) => Uint8Array.from([kind, ...new TextEncoder().encode(text)])

/** Makes a pad without tags. It does nothing until a link is served to it. */
export function m100Pad({ platform, pollMs = 10, mostDbm = 26 }: M100PadOptions): M100Pad {
  const codec = m100Codec('reader')
  const faults = faultSwitches()
  const tags = new Map<string, Tag>()
  const taken = new Map<string, Tag>()
  const links = new Set<ByteLink>()
  const done: { what: 'kill' | 'eas'; epc: string }[] = []
  let selected: string | null = null
  let centiDbm = 2_000
  let left = 0
  let cancelPoll: Cancel = () => {}

  const pcOf = (epc: string) => ((epc.length / 4) << 11) & 0xffff
  const said = (command: number, parameters: Uint8Array): M100Frame => ({ type: 'answer', command, parameters })
  const refused = (code: number): M100Frame => said(M100.refusal, Uint8Array.of(code))

  function notice(tag: Tag): M100Frame {
    const pc = pcOf(tag.epc)
    return {
      type: 'notice',
      command: M100.poll,
      parameters: Uint8Array.from([tag.rssiDbm & 0xff, pc >> 8, pc & 0xff, ...bytesOfHex(tag.epc), 0x3a, 0x76]),
    }
  }

  function broadcast(frame: M100Frame): void {
    for (const link of links) void sendQuietly(link, codec.encode(frame))
  }

  function pollOnce(): void {
    const found = [...tags.values()].filter((tag) => tag.alive)
    const hits = faults.hitting(0, M100.pollMany)
    if (!hits.some((hit) => hit.kind === 'dead' || hit.kind === 'mute')) {
      for (const frame of found.length > 0 ? found.map(notice) : [refused(NO_TAG)]) broadcast(frame)
    }
    left--
    cancelPoll = left > 0 ? platform.timers.after(pollMs, pollOnce) : () => {}
  }

  function stop(): void {
    cancelPoll()
    left = 0
  }

  function aboutTag(command: number, tag: Tag): M100Frame {
    const pc = pcOf(tag.epc)
    const name = [pc >> 8, pc & 0xff, ...bytesOfHex(tag.epc)]
    return said(command, Uint8Array.from([name.length, ...name, 0]))
  }

  function onTag(what: 'kill' | 'eas', command: number, missing: number, parameters: Uint8Array): M100Frame {
    const tag = tags.get(selected ?? '')
    const password = hexOfBytes(parameters.subarray(0, 4))
    if (!tag?.alive) return refused(missing)
    if (what === 'kill' && (password === '00000000' || tag.killPassword !== password)) return refused(0xd0)
    if (what === 'eas' && tag.accessPassword !== password) return refused(0x16)
    if (what === 'kill') tag.alive = false
    else tag.eas = parameters[4] === 1
    done.push({ what, epc: tag.epc })
    if (done.length > MOST_DONE) done.shift()
    return aboutTag(command, tag)
  }

  const answers: Readonly<Record<number, (parameters: Uint8Array) => M100Frame | null>> = {
    [M100.information]: ([kind = 0]) => said(M100.information, ascii(kind, TEXTS[kind] ?? '')),
    [M100.setRegion]: () => said(M100.setRegion, OK),
    [M100.setSelect](parameters) {
      selected = hexOfBytes(parameters.subarray(7))
      return said(M100.setSelect, OK)
    },
    [M100.stop]() {
      stop()
      return said(M100.stop, OK)
    },
    [M100.pollMany](parameters) {
      stop()
      left = ((parameters[1] ?? 0) << 8) | (parameters[2] ?? 0)
      cancelPoll = platform.timers.after(pollMs, pollOnce)
      return null
    },
    [M100.poll]() {
      const first = [...tags.values()].find((tag) => tag.alive)
      return first ? notice(first) : refused(NO_TAG)
    },
    [M100.setPower](parameters) {
      const wanted = ((parameters[0] ?? 0) << 8) | (parameters[1] ?? 0)
      if (wanted > mostDbm * 100) return refused(0x17)
      centiDbm = wanted
      return said(M100.setPower, OK)
    },
    [M100.getPower]: () => said(M100.getPower, Uint8Array.of(centiDbm >> 8, centiDbm & 0xff)),
    [M100.kill]: (parameters) => onTag('kill', M100.kill, 0x12, parameters),
    [M100.changeEas]: (parameters) => onTag('eas', M100.changeEas, 0x1b, parameters),
  }

  async function serveOne(link: ByteLink, frame: M100Frame): Promise<void> {
    const hits = faults.hitting(0, frame.command)
    if (hits.some((hit) => hit.kind === 'dead')) return
    const exception = hits.find((hit) => hit.kind === 'exception')
    const usual = answers[frame.command] ?? (() => refused(0x17))
    const answer = exception ? refused(exception.code) : usual(frame.parameters)
    await answerWithFaults({ link, timers: platform.timers, hits, bytes: answer && codec.encode(answer) }, 2)
  }

  return {
    put({ epc, rssiDbm = -55, killPassword = '00000000', accessPassword = '00000000' }) {
      if (tags.size >= MOST_TAGS) throw new RangeError(`at most ${MOST_TAGS} tags`)
      taken.delete(epc)
      tags.set(epc, { epc, rssiDbm, killPassword, accessPassword, alive: true, eas: true })
    },
    take(epc) {
      const tag = tags.get(epc)
      if (tag) taken.set(epc, tag)
      for (const oldest of [...taken.keys()].slice(0, -MOST_TAGS)) taken.delete(oldest)
      tags.delete(epc)
    },
    tag: (epc) => tags.get(epc) ?? taken.get(epc) ?? null,
    done,
    get powerDbm() {
      return centiDbm / 100
    },
    get polling() {
      return left > 0
    },
    faults,
    restart() {
      stop()
      selected = null
      centiDbm = 2_000
    },
    async serve(link) {
      const hears = m100Codec('reader')
      let order: Promise<void> = Promise.resolve()
      links.add(link)
      try {
        for await (const chunk of link.bytes)
          for (const frame of hears.push(chunk)) order = order.then(() => serveOne(link, frame))
      } catch {
        // The link broke: that is how a simulated pad is unplugged too.
      } finally {
        links.delete(link)
        await link.close()
      }
    },
  }
}
