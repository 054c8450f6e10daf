import { pause, type Timers } from '../../policy/platform.ts'
import { type OsdpCheck, type OsdpFrame, osdpCodec } from './protocol/frame.ts'
import { nakText, OSDP_NAK, OSDP_REPLY, type OsdpCommand } from './protocol/messages.ts'
import type { SecureChannel } from './protocol/secure-channel.ts'
import { eitherSignal } from '../kit/input-watch.ts'
import { type ExchangeAnswer, type Lane, type LostAnswer, startExchange, type Exchange } from '../kit/exchange.ts'
import type { LinkProtocol } from '../transports/shared-links.ts'

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

export interface SendOptions {
  readonly lane?: Lane
  /** Cancels the command. The signal has no effect after the first byte was sent. */
  readonly signal?: AbortSignal
  /** Called once, before the first byte is sent. */
  readonly onSend?: () => void
  /** Security block of a handshake command. */
  readonly security?: readonly number[]
}

export type OsdpAnswer =
  | { readonly kind: 'reply'; readonly code: number; readonly data: Uint8Array; readonly security: Uint8Array | null }
  /** `repeated`: the agent sent the command more than once, and the device may have executed the first copy. */
  | { readonly kind: 'nak'; readonly code: number; readonly repeated: boolean }
  | LostAnswer

interface DialogueOptions {
  readonly line: OsdpLine
  readonly address: number
  readonly check: OsdpCheck
  readonly timeoutMs: number
  readonly timers: Timers
  readonly over: AbortSignal
  /** Called when the device stops answering. */
  onUnresponsive(detail: string): void
  /** Called when the device answers, but the dialogue cannot continue. */
  onBroken(detail: string): void
  /** Called for a fault that a person must look at. */
  onFault(detail: string): void
}

const MAX_TRIES = 3
const MAX_BUSY = 20
const BUSY_PAUSE_MS = 100

const NOT_OURS =
  'an answer outside the secure channel or with a wrong MAC: another sender uses this line, or the device has lost the channel'

const isBusy = (frame: OsdpFrame): boolean =>
  frame.code === OSDP_REPLY.busy && frame.security === null && frame.data.length === 0

/**
 * True for replies that need not repeat the sequence number of the command. BUSY has sequence number 0; a NAK may have
 * any number.
 */
const isUnnumbered = (frame: OsdpFrame): boolean => isBusy(frame) || frame.code === OSDP_REPLY.nak

/**
 * Sends numbered commands to one device (SIA OSDP 2.2). After a lost answer the dialogue repeats the command with the
 * same number and bytes. The device executes the command once and repeats its answer. If all tries fail, the next
 * dialogue starts with number 0, which resets the device’s numbering, and does not repeat the command.
 */
export class Dialogue {
  readonly #o: DialogueOptions
  #sequence = -1
  #channel: SecureChannel | null = null
  #previous: Promise<unknown> = Promise.resolve()

  constructor(o: DialogueOptions) {
    this.#o = o
  }

  /** Sends one command at a time. Never rejects. */
  send(command: OsdpCommand, options: SendOptions = {}): Promise<OsdpAnswer> {
    const answer = this.#previous.then((): Promise<OsdpAnswer> | OsdpAnswer => {
      if (this.#o.over.aborted) return { kind: 'lost', possiblySent: false, detail: 'the connection was lost' }
      if (options.signal?.aborted) return { kind: 'lost', possiblySent: false, detail: 'cancelled before it was sent' }
      if (!options.signal) return this.#transmit(command, options, this.#o.over)
      const either = eitherSignal(options.signal, this.#o.over)
      return this.#transmit(command, options, either.signal).finally(either.done)
    })
    this.#previous = answer
    return answer
  }

  /** Uses the secure channel from the next command on. After that, an unsecured answer ends the dialogue. */
  secure(next: SecureChannel): void {
    this.#channel = next
  }

  #numbered({ code, data }: OsdpCommand, security: readonly number[] | undefined): OsdpFrame {
    this.#sequence = this.#sequence === 3 ? 1 : this.#sequence + 1
    const block = security ? Uint8Array.from(security) : null
    const plain = {
      address: this.#o.address,
      reply: false,
      sequence: this.#sequence,
      check: this.#o.check,
      security: block,
      code,
      data,
      mac: null,
    }
    return this.#channel ? this.#channel.seal(plain) : plain
  }

  #lost(detail: string): LostAnswer {
    return { kind: 'lost', possiblySent: true, detail }
  }

  #broken(detail: string): LostAnswer {
    this.#o.onBroken(detail)
    return this.#lost(detail)
  }

  #read(frame: OsdpFrame, repeated: boolean): OsdpAnswer {
    const nak = frame.code === OSDP_REPLY.nak ? (frame.data[0] ?? 0) : null
    if (!this.#channel && nak !== null) return { kind: 'nak', code: nak, repeated }
    if (!this.#channel) return { kind: 'reply', code: frame.code, data: frame.data, security: frame.security }
    // Any sender on the line can forge an unsecured NAK, so such a NAK proves nothing about the command.
    if (!frame.mac && nak !== null) return this.#broken(`the device left the secure channel: ${nakText(nak)}`)
    const opened = this.#channel.open(frame)
    if (!opened) {
      this.#o.onFault(NOT_OURS)
      return this.#broken('an answer that is not from the secure channel')
    }
    if (opened.code === OSDP_REPLY.nak) return { kind: 'nak', code: opened.data[0] ?? 0, repeated }
    return { kind: 'reply', code: opened.code, data: opened.data, security: null }
  }

  async #transmit(command: OsdpCommand, options: SendOptions, signal: AbortSignal): Promise<OsdpAnswer> {
    let sent: OsdpFrame | null = null
    let busy = 0
    for (let tries = 1; ; tries++) {
      const repeats = sent !== null
      const next = () => (sent ??= this.#numbered(command, options.security))
      const answer: ExchangeAnswer<OsdpFrame> = await this.#o.line.request({
        // Numbers and seals the command just before it is sent. A command that is cancelled earlier therefore uses up
        // no number.
        get frame() {
          return next()
        },
        target: `address ${this.#o.address}`,
        timeoutMs: this.#o.timeoutMs,
        isAnswer: (frame) =>
          frame.reply &&
          frame.address === this.#o.address &&
          (frame.sequence === sent?.sequence || isUnnumbered(frame)),
        lane: options.lane ?? 'command',
        signal: repeats ? this.#o.over : signal,
        ...(!repeats && options.onSend ? { onSend: options.onSend } : {}),
      })
      if (answer.kind === 'lost') {
        if (!sent) return answer
        if (this.#o.over.aborted || !answer.possiblySent) return this.#lost(answer.detail)
        if (tries < MAX_TRIES) continue
        this.#o.onUnresponsive(`${MAX_TRIES} times: ${answer.detail}`)
        return this.#lost(answer.detail)
      }
      if (answer.kind === 'sent') return this.#lost('no answer')
      const { frame } = answer
      if (isBusy(frame)) {
        if (++busy > MAX_BUSY) return this.#broken('the device was busy for too long')
        tries--
        await pause(this.#o.timers, BUSY_PAUSE_MS, this.#o.over).catch(() => {})
        if (this.#o.over.aborted) return this.#lost('the connection was lost')
        continue
      }
      // The device has received a damaged frame and has not executed the command, so the command is repeated.
      if (!this.#channel && frame.code === OSDP_REPLY.nak && frame.data[0] === OSDP_NAK.check && tries < MAX_TRIES)
        continue
      return this.#read(frame, repeats)
    }
  }
}
