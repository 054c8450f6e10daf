import type { Cancel, Platform, Randomness } from '../../policy/platform.ts'
import { EVERYBODY, osdpCodec, type OsdpFrame } from '../../device-drivers/osdp/protocol/frame.ts'
import { OSDP_COMMAND, OSDP_NAK, OSDP_REPLY } from '../../device-drivers/osdp/protocol/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults, echoingLink, faultSwitches } from './faults.ts'
import type { LockModel } from './modbus.ts'
import { secretsEqual } from '../../policy/secrets-equal.ts'
import {
  DEFAULT_KEY,
  deviceCryptogram,
  firstReplyMac,
  panelCryptogram,
  SCS,
  secureChannel,
  sessionKeys,
  type SecureChannel,
  type SessionKeys,
} from '../../device-drivers/osdp/protocol/secure-channel.ts'

/** A reply of the handshake with its security block; null for a refusal. */
type HandshakeReply = { readonly code: number; readonly data: Uint8Array; readonly security: Uint8Array } | null

/** What real devices do with the flag that names the kind of key. */
interface KeyQuirks {
  /** The device always reports the default key (OSDP.Net#193). */
  readonly wrongKeyFlag?: boolean
  /** A device without a key of its own answers with the default key instead of a refusal, and says so. */
  readonly offersDefaultKey?: boolean
}

/** The device's side of the handshake. */
interface DeviceChannel {
  challenge(security: Uint8Array, panelRandom: Uint8Array, key: Uint8Array | null, quirks?: KeyQuirks): HandshakeReply
  /** Checks the panel's proof. If the proof is right, the frames after the reply use the channel. */
  prove(cryptogram: Uint8Array): HandshakeReply
  /** The secure channel; null before the handshake. */
  readonly channel: SecureChannel | null
  /** True if the channel uses the default key. */
  readonly isDefault: boolean
  drop(): void
}

const NAME = Uint8Array.of(0x5a, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07)

/** Makes the device's side; it has no channel yet. */
function deviceChannel(random: Randomness): DeviceChannel {
  let channel: SecureChannel | null = null
  let isDefault = false
  let begun: { keys: SessionKeys; panelRandom: Uint8Array; deviceRandom: Uint8Array; kind: number } | null = null

  return {
    challenge(security, panelRandom, own, quirks = {}) {
      channel = null
      const requested = security[1] ?? 0
      const kind = quirks.offersDefaultKey && !own ? 0 : requested
      const key = kind === 1 ? own : DEFAULT_KEY
      if (!key || panelRandom.length !== 8) return null
      const deviceRandom = random.bytes(8)
      const keys = sessionKeys(key, panelRandom)
      begun = { keys, panelRandom, deviceRandom, kind }
      const data = Uint8Array.from([...NAME, ...deviceRandom, ...deviceCryptogram(keys, panelRandom, deviceRandom)])
      return {
        code: OSDP_REPLY.deviceCryptogram,
        data,
        security: Uint8Array.of(SCS.deviceCryptogram, quirks.wrongKeyFlag ? 0 : kind),
      }
    },
    prove(cryptogram) {
      const from = begun
      begun = null
      if (!from || !secretsEqual(cryptogram, panelCryptogram(from.keys, from.panelRandom, from.deviceRandom)))
        return null
      const first = firstReplyMac(from.keys, cryptogram)
      channel = secureChannel(from.keys, first)
      isDefault = from.kind === 0
      return { code: OSDP_REPLY.firstMac, data: first, security: Uint8Array.of(SCS.firstMac, 1) }
    },
    get channel() {
      return channel
    },
    get isDefault() {
      return isDefault
    },
    drop() {
      channel = null
      begun = null
    },
  }
}

export interface OsdpDeviceOptions {
  readonly platform: Platform
  /** Default 0. */
  readonly address?: number
  /** The device's own base key, 16 bytes; null if it has only the default key. */
  readonly key?: Uint8Array | null
  /**
   * True if the device also accepts the default key. If omitted: true for a device without a key of its own, else
   * false.
   */
  readonly installMode?: boolean
  /** Default: output 0 opens a lock, and input 0 turns on 30 ms later. */
  readonly locks?: readonly LockModel[]
  /** Called at each change of an output. */
  readonly onChange?: (output: number, on: boolean) => void
  readonly quirks?: OsdpQuirks
}

/** What real devices and adapters do, and the standard does not say. Default: nothing. */
interface OsdpQuirks extends KeyQuirks {
  /** The adapter repeats everything that the agent sends. */
  readonly echo?: boolean
  /** Time until each answer, ms. */
  readonly answerMs?: number
}

/** A device as it leaves the factory: address 0, only the public default key. */
export const OSDP_EX_WORKS = {
  key: null,
  quirks: { offersDefaultKey: true },
} as const satisfies Partial<OsdpDeviceOptions>

const SIZE = 4
const MAX_LOGGED = 10_000
const MAX_CARDS = 100
const DEFAULT_LOCKS: readonly LockModel[] = [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }]
/** Vendor, model 1.2, serial 1234567, firmware 3.4.5. */
const IDENTITY = Uint8Array.of(0xca, 0xfe, 0x01, 1, 2, 0x87, 0xd6, 0x12, 0x00, 3, 4, 5)
const CAPABILITIES = Uint8Array.of(1, 1, SIZE, 2, 1, SIZE, 3, 1, 0, 4, 1, 1, 5, 1, 1, 9, 1, 1)
/** Commands that are allowed outside the secure channel. */
const PLAIN: ReadonlySet<number> = new Set([
  OSDP_COMMAND.id,
  OSDP_COMMAND.capabilities,
  OSDP_COMMAND.challenge,
  OSDP_COMMAND.panelCryptogram,
])

interface Reply {
  readonly code: number
  readonly data?: Uint8Array
  readonly security?: Uint8Array
}
const nak = (code: number): Reply => ({ code: OSDP_REPLY.nak, data: Uint8Array.of(code) })
const ACK: Reply = { code: OSDP_REPLY.ack }

/** A simulated OSDP device: a card reader with a LED and a buzzer, 4 outputs and 4 inputs. */
export class OsdpDevice {
  readonly #options: OsdpDeviceOptions
  readonly #platform: Platform
  readonly #address: number
  readonly #locks: readonly LockModel[]
  readonly #codec = osdpCodec()
  /** In a fault, `functions` are command codes, and `exception` is a NAK code. */
  readonly faults = faultSwitches()
  readonly #handshake: DeviceChannel
  readonly outputs = Array.from({ length: SIZE }, () => false)
  readonly inputs = Array.from({ length: SIZE }, () => false)
  readonly #endTimers = new Map<number, Cancel>()
  readonly #cards: Uint8Array[] = []
  /** Executed commands to outputs, oldest first; the last 10,000. */
  readonly outputCommands: { output: number; control: number }[] = []
  #key: Uint8Array | null
  #lastLed: Uint8Array | null = null
  #lastBuzzer: Uint8Array | null = null
  #tampered = false
  #busyTimes = 0
  #last: { sequence: number; code: number; bytes: Uint8Array } | null = null
  readonly #answers: Readonly<Record<number, (data: Uint8Array, frame: OsdpFrame) => Reply>>

  readonly #onOutput = ([output = 0, control = 0, low = 0, high = 0]: Uint8Array): Reply => {
    if (output >= SIZE || control > 6) return nak(OSDP_NAK.cannotProcess)
    this.outputCommands.push({ output, control })
    if (this.outputCommands.length > MAX_LOGGED) this.outputCommands.shift()
    this.#endTimers.get(output)?.()
    this.#endTimers.delete(output)
    const on = control === 2 || control === 4 || control === 5
    this.#setOutput(output, on)
    if (control === 5)
      this.#endTimers.set(
        output,
        this.#platform.timers.after((low | (high << 8)) * 100, () => this.#setOutput(output, false)),
      )
    return ACK
  }

  constructor(options: OsdpDeviceOptions) {
    this.#options = options
    this.#platform = options.platform
    this.#address = options.address ?? 0
    this.#locks = options.locks ?? DEFAULT_LOCKS
    this.#handshake = deviceChannel(options.platform.random)
    this.#key = options.key ?? null
    const { answerMs } = options.quirks ?? {}
    if (answerMs) this.faults.on({ kind: 'delay', ms: answerMs })
    let installMode = options.installMode ?? this.#key === null
    this.#answers = {
      [OSDP_COMMAND.poll]: () => {
        const card = this.#cards.shift()
        return card ? { code: OSDP_REPLY.card, data: card } : ACK
      },
      [OSDP_COMMAND.id]: () => ({ code: OSDP_REPLY.id, data: IDENTITY }),
      [OSDP_COMMAND.capabilities]: () => ({ code: OSDP_REPLY.capabilities, data: CAPABILITIES }),
      [OSDP_COMMAND.localStatus]: () => ({
        code: OSDP_REPLY.localStatus,
        data: Uint8Array.of(this.#tampered ? 1 : 0, 0),
      }),
      [OSDP_COMMAND.inputStatus]: () => ({ code: OSDP_REPLY.inputStatus, data: this.#bits(this.inputs) }),
      [OSDP_COMMAND.outputStatus]: () => ({ code: OSDP_REPLY.outputStatus, data: this.#bits(this.outputs) }),
      [OSDP_COMMAND.output]: this.#onOutput,
      [OSDP_COMMAND.led]: (data) => {
        this.#lastLed = data
        return ACK
      },
      [OSDP_COMMAND.buzzer]: (data) => {
        this.#lastBuzzer = data
        return ACK
      },
      [OSDP_COMMAND.keySet]: (data) => {
        if (!this.#handshake.channel || data.length !== 18) return nak(OSDP_NAK.cannotProcess)
        this.#key = data.slice(2)
        installMode = false
        return ACK
      },
      [OSDP_COMMAND.challenge]: (data, { security }) => {
        if (!security || (security[1] === 0 && !installMode)) return nak(OSDP_NAK.noSecurity)
        return this.#handshake.challenge(security, data, this.#key, options.quirks) ?? nak(OSDP_NAK.noSecurity)
      },
      [OSDP_COMMAND.panelCryptogram]: (data) => this.#handshake.prove(data) ?? nak(OSDP_NAK.noSecurity),
    }
  }

  /** The last LED and buzzer commands. */
  get led(): Uint8Array | null {
    return this.#lastLed
  }

  get buzzer(): Uint8Array | null {
    return this.#lastBuzzer
  }

  get key(): Uint8Array | null {
    return this.#key
  }

  get isSecure(): boolean {
    return this.#handshake.channel !== null && !this.#handshake.isDefault
  }

  /** Presents a card, which the device reports at the next poll. At most 100 cards wait. */
  card(data: Uint8Array, count: number | undefined = data.length * 8): void {
    if (this.#cards.length < MAX_CARDS) this.#cards.push(Uint8Array.from([0, 0, count & 0xff, count >> 8, ...data]))
  }

  readonly setInput = (input: number, on: boolean): void => {
    this.inputs[input] = on
  }

  tamper(on: boolean): void {
    this.#tampered = on
  }

  /** Answers BUSY to the next commands. */
  busy(times: number): void {
    this.#busyTimes = times
  }

  /** Simulates a short power failure. Outputs switch off; the secure channel and the sequence numbers are lost. */
  readonly restart = (): void => {
    this.#resetNumbers()
    for (const cancel of this.#endTimers.values()) cancel()
    this.#endTimers.clear()
    this.outputs.forEach((_, output) => this.#setOutput(output, false))
  }

  /** Serves a link until it ends. An arrow function, because callers pass it as a callback. */
  readonly serve = async (line: ByteLink): Promise<void> => {
    const link = this.#options.quirks?.echo ? echoingLink(line) : line
    const codec = osdpCodec()
    let order: Promise<void> = Promise.resolve()
    try {
      for await (const chunk of link.bytes)
        for (const frame of codec.push(chunk)) order = order.then(() => this.#serveOne(link, frame))
    } catch {
      // Ignores the error, because a broken link is like an unplugged device.
    } finally {
      await link.close()
    }
  }

  #setOutput(output: number, on: boolean): void {
    if (this.outputs[output] === on) return
    this.outputs[output] = on
    this.#options.onChange?.(output, on)
    for (const lock of this.#locks) {
      if (lock.coil === output) {
        this.#platform.timers.after(
          on ? lock.openMs : lock.closeMs,
          () => void (this.outputs[output] === on && (this.inputs[lock.input] = on)),
        )
      }
    }
  }

  #bits(states: readonly boolean[]): Uint8Array {
    return Uint8Array.from(states, Number)
  }

  /** Returns the plain frame, or the code of the NAK to send. */
  #opened(frame: OsdpFrame): OsdpFrame | number {
    if (!frame.mac)
      return PLAIN.has(frame.code) || (this.#key === null && !this.#handshake.channel)
        ? frame
        : OSDP_NAK.securityRequired
    const plain = this.#handshake.channel?.open(frame)
    if (plain) return plain
    this.#handshake.drop()
    return OSDP_NAK.noSecurity
  }

  #reply(frame: OsdpFrame, refuse: number | null): Uint8Array {
    const inChannel = frame.mac !== null
    const plain = refuse === null ? this.#opened(frame) : refuse
    const answer =
      typeof plain === 'number'
        ? nak(plain)
        : (this.#answers[plain.code]?.(plain.data, plain) ?? nak(OSDP_NAK.unknownCommand))
    const { address: at, sequence, check } = frame
    const out: OsdpFrame = {
      address: at,
      reply: true,
      sequence,
      check,
      security: answer.security ?? null,
      code: answer.code,
      data: answer.data ?? new Uint8Array(0),
      mac: null,
    }
    const channel = inChannel && typeof plain !== 'number' ? this.#handshake.channel : null
    return this.#codec.encode(channel ? channel.seal(out) : out)
  }

  #resetNumbers(): void {
    this.#last = null
    this.#handshake.drop()
  }

  #replyOnce(frame: OsdpFrame, refuse: number | null): Uint8Array {
    if (frame.sequence === 0) this.#resetNumbers()
    else if (this.#last?.sequence === frame.sequence && this.#last.code === frame.code) return this.#last.bytes
    else if (!this.#last || frame.sequence !== (this.#last.sequence === 3 ? 1 : this.#last.sequence + 1))
      return this.#reply(frame, OSDP_NAK.sequence)
    const bytes = this.#reply(frame, refuse)
    this.#last = { sequence: frame.sequence, code: frame.code, bytes }
    return bytes
  }

  async #serveOne(link: ByteLink, frame: OsdpFrame): Promise<void> {
    if (frame.reply || (frame.address !== this.#address && frame.address !== EVERYBODY)) return
    const hits = this.faults.hitting(frame.address, frame.code)
    if (hits.some((hit) => hit.kind === 'dead')) return
    if (this.#busyTimes > 0) {
      this.#busyTimes--
      const busy = {
        ...frame,
        reply: true,
        sequence: 0,
        security: null,
        code: OSDP_REPLY.busy,
        data: new Uint8Array(0),
        mac: null,
      }
      return answerWithFaults({ link, timers: this.#platform.timers, hits, bytes: this.#codec.encode(busy) }, -1)
    }
    const exception = hits.find((hit) => hit.kind === 'exception')
    await answerWithFaults(
      { link, timers: this.#platform.timers, hits, bytes: this.#replyOnce(frame, exception?.code ?? null) },
      -1,
    )
  }
}
