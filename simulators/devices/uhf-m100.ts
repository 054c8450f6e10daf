import type { Cancel, Platform } from '../../policy/platform.ts'
import { bytesOfHex, hexOfBytes } from '../../device-drivers/kit/protocol/hex.ts'
import { m100Codec, type M100Frame } from '../../device-drivers/uhf-m100/protocol/frame.ts'
import { M100, M100_INFORMATION, NO_TAG } from '../../device-drivers/uhf-m100/protocol/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults, echoingLink, sendQuietly, faultSwitches } from './faults.ts'

/** A simulated UHF tag. */
export interface SimulatedTag {
  /** Upper-case hex. */
  readonly epc: string
  readonly rssiDbm?: number
  /** 8 hex digits; with the default zeros the tag cannot be killed. */
  readonly killPassword?: string
  /** 8 hex digits; default zeros. */
  readonly accessPassword?: string
}

interface Tag extends Required<SimulatedTag> {
  alive: boolean
  eas: boolean
}

export interface M100PadOptions {
  readonly platform: Platform
  /** Interval of the polls, ms; default 10. */
  readonly pollMs?: number
  /** Maximum power, dBm; default 26. */
  readonly mostDbm?: number
  readonly quirks?: M100Quirks
}

/** What real modules do, and the manual does not say. Default: nothing. */
interface M100Quirks {
  /**
   * The module starts in select mode 1, in which kill and EAS commands go to any tag, and Set Select does not change the
   * mode.
   */
  readonly ownSelectMode?: boolean
  /** The adapter repeats everything that the agent sends. */
  readonly echo?: boolean
  /** Time until each answer, ms. */
  readonly answerMs?: number
}

/** A module as published logs of YRM100 show it: select mode 1. */
export const M100_EX_WORKS = { quirks: { ownSelectMode: true } } as const satisfies Partial<M100PadOptions>

/** Select mode in which only kill, EAS and other access commands use the selection. */
const SELECT_FOR_ACCESS = 2

const TEXTS: Readonly<Record<number, string>> = {
  [M100_INFORMATION.hardware]: 'M100 26dBm V1.0',
  [M100_INFORMATION.software]: 'V2.3.5',
  [M100_INFORMATION.maker]: 'MagicRf',
}
const MAX_DONE = 1_000
const MAX_TAGS = 1_000
const OK = Uint8Array.of(0)

const ascii = (kind: number, text: string) => Uint8Array.from([kind, ...new TextEncoder().encode(text)])

/** A simulated UHF pad with an M100 chip. */
export class M100Pad {
  readonly #options: M100PadOptions
  readonly #pollMs: number
  readonly #codec = m100Codec('reader')
  /** The `exception` of a fault is the code of a refusal. */
  readonly faults = faultSwitches()
  readonly #tags = new Map<string, Tag>()
  readonly #taken = new Map<string, Tag>()
  readonly #links = new Set<ByteLink>()
  /** Executed kills and EAS changes, oldest first; the last 1,000. */
  readonly done: { what: 'kill' | 'eas'; epc: string }[] = []
  #selected: string | null = null
  #selectMode = 1
  #centiDbm = 2_000
  #left = 0
  #cancelPoll: Cancel = () => {}
  readonly #answers: Readonly<Record<number, (parameters: Uint8Array) => M100Frame | null>>

  readonly #pollOnce = (): void => {
    const found = [...this.#tags.values()].filter((tag) => tag.alive)
    const hits = this.faults.hitting(0, M100.pollMany)
    if (!hits.some((hit) => hit.kind === 'dead' || hit.kind === 'mute')) {
      for (const frame of found.length > 0 ? found.map((tag) => this.#notice(tag)) : [this.#refused(NO_TAG)])
        this.#broadcast(frame)
    }
    this.#left--
    this.#cancelPoll = this.#left > 0 ? this.#options.platform.timers.after(this.#pollMs, this.#pollOnce) : () => {}
  }

  constructor(options: M100PadOptions) {
    this.#options = options
    this.#pollMs = options.pollMs ?? 10
    const { answerMs } = options.quirks ?? {}
    if (answerMs) this.faults.on({ kind: 'delay', ms: answerMs })
    const mostDbm = options.mostDbm ?? 26
    this.#answers = {
      [M100.information]: ([kind = 0]) => this.#reply(M100.information, ascii(kind, TEXTS[kind] ?? '')),
      [M100.setRegion]: () => this.#reply(M100.setRegion, OK),
      [M100.setSelect]: (parameters) => {
        this.#selected = hexOfBytes(parameters.subarray(7))
        if (!options.quirks?.ownSelectMode) this.#selectMode = SELECT_FOR_ACCESS
        return this.#reply(M100.setSelect, OK)
      },
      [M100.setSelectMode]: ([mode = 0]) => {
        this.#selectMode = mode
        return this.#reply(M100.setSelect, OK)
      },
      [M100.stop]: () => {
        this.#stop()
        return this.#reply(M100.stop, OK)
      },
      [M100.pollMany]: (parameters) => {
        this.#stop()
        this.#left = ((parameters[1] ?? 0) << 8) | (parameters[2] ?? 0)
        this.#cancelPoll = options.platform.timers.after(this.#pollMs, this.#pollOnce)
        return null
      },
      [M100.poll]: () => {
        const first = [...this.#tags.values()].find((tag) => tag.alive)
        return first ? this.#notice(first) : this.#refused(NO_TAG)
      },
      [M100.setPower]: (parameters) => {
        const wanted = ((parameters[0] ?? 0) << 8) | (parameters[1] ?? 0)
        if (wanted > mostDbm * 100) return this.#refused(0x17)
        this.#centiDbm = wanted
        return this.#reply(M100.setPower, OK)
      },
      [M100.getPower]: () => this.#reply(M100.getPower, Uint8Array.of(this.#centiDbm >> 8, this.#centiDbm & 0xff)),
      [M100.kill]: (parameters) => this.#onTag('kill', M100.kill, 0x12, parameters),
      [M100.changeEas]: (parameters) => this.#onTag('eas', M100.changeEas, 0x1b, parameters),
    }
  }

  /** Puts a tag on the pad. Replaces a tag with the same EPC. */
  put({ epc, rssiDbm = -55, killPassword = '00000000', accessPassword = '00000000' }: SimulatedTag): void {
    if (this.#tags.size >= MAX_TAGS) throw new RangeError(`at most ${MAX_TAGS} tags`)
    this.#taken.delete(epc)
    this.#tags.set(epc, { epc, rssiDbm, killPassword, accessPassword, alive: true, eas: true })
  }

  /** Sends a notice of a running poll with these parameters, as other firmware does. */
  notice(parameters: readonly number[]): void {
    this.#broadcast({ type: 'notice', command: M100.poll, parameters: Uint8Array.from(parameters) })
  }

  take(epc: string): void {
    const tag = this.#tags.get(epc)
    if (tag) this.#taken.set(epc, tag)
    for (const oldest of [...this.#taken.keys()].slice(0, -MAX_TAGS)) this.#taken.delete(oldest)
    this.#tags.delete(epc)
  }

  /** State of a tag, even if it was taken away. */
  tag(epc: string): { readonly alive: boolean; readonly eas: boolean } | null {
    return this.#tags.get(epc) ?? this.#taken.get(epc) ?? null
  }

  get powerDbm(): number {
    return this.#centiDbm / 100
  }

  get polling(): boolean {
    return this.#left > 0
  }

  /** Simulates a short power failure. Polling stops; the settings of power and selection are lost. */
  readonly restart = (): void => {
    this.#stop()
    this.#selected = null
    this.#selectMode = 1
    this.#centiDbm = 2_000
  }

  /** Serves a link until it ends. An arrow function, because callers pass it as a callback. */
  readonly serve = async (line: ByteLink): Promise<void> => {
    const link = this.#options.quirks?.echo ? echoingLink(line) : line
    const codec = m100Codec('reader')
    let order: Promise<void> = Promise.resolve()
    this.#links.add(link)
    try {
      for await (const chunk of link.bytes)
        for (const frame of codec.push(chunk)) order = order.then(() => this.#serveOne(link, frame))
    } catch {
      // Ignores the error, because a broken link is like an unplugged pad.
    } finally {
      this.#links.delete(link)
      await link.close()
    }
  }

  #pcOf(epc: string): number {
    return ((epc.length / 4) << 11) & 0xffff
  }

  #reply(command: number, parameters: Uint8Array): M100Frame {
    return { type: 'answer', command, parameters }
  }

  #refused(code: number): M100Frame {
    return this.#reply(M100.refusal, Uint8Array.of(code))
  }

  #notice(tag: Tag): M100Frame {
    const pc = this.#pcOf(tag.epc)
    return {
      type: 'notice',
      command: M100.poll,
      parameters: Uint8Array.from([tag.rssiDbm & 0xff, pc >> 8, pc & 0xff, ...bytesOfHex(tag.epc), 0x3a, 0x76]),
    }
  }

  #broadcast(frame: M100Frame): void {
    for (const link of this.#links) void sendQuietly(link, this.#codec.encode(frame))
  }

  #stop(): void {
    this.#cancelPoll()
    this.#left = 0
  }

  #aboutTag(command: number, tag: Tag): M100Frame {
    const pc = this.#pcOf(tag.epc)
    const name = [pc >> 8, pc & 0xff, ...bytesOfHex(tag.epc)]
    return this.#reply(command, Uint8Array.from([name.length, ...name, 0]))
  }

  #onTag(what: 'kill' | 'eas', command: number, missing: number, parameters: Uint8Array): M100Frame {
    const isSelected = this.#selectMode === SELECT_FOR_ACCESS
    const first = [...this.#tags.values()].find(({ alive }) => alive)
    const tag = isSelected ? this.#tags.get(this.#selected ?? '') : first
    const password = hexOfBytes(parameters.subarray(0, 4))
    if (!tag?.alive) return this.#refused(missing)
    if (what === 'kill' && (password === '00000000' || tag.killPassword !== password)) return this.#refused(0xd0)
    if (what === 'eas' && tag.accessPassword !== password) return this.#refused(0x16)
    if (what === 'kill') tag.alive = false
    else tag.eas = parameters[4] === 1
    this.done.push({ what, epc: tag.epc })
    if (this.done.length > MAX_DONE) this.done.shift()
    return this.#aboutTag(command, tag)
  }

  async #serveOne(link: ByteLink, frame: M100Frame): Promise<void> {
    const hits = this.faults.hitting(0, frame.command)
    if (hits.some((hit) => hit.kind === 'dead')) return
    const exception = hits.find((hit) => hit.kind === 'exception')
    const usual = this.#answers[frame.command] ?? (() => this.#refused(0x17))
    const answer = exception ? this.#refused(exception.code) : usual(frame.parameters)
    await answerWithFaults(
      { link, timers: this.#options.platform.timers, hits, bytes: answer && this.#codec.encode(answer) },
      2,
    )
  }
}
