import type { Cancel, Platform } from '../../policy/platform.ts'
import { EVERYBODY, osdpCodec } from '../../device-drivers/protocols/osdp/frame.ts'
import type { OsdpFrame } from '../../device-drivers/protocols/osdp/frame.ts'
import { OSDP_COMMAND, OSDP_NAK, OSDP_REPLY } from '../../device-drivers/protocols/osdp/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults } from './answer-faults.ts'
import { faultSwitches } from './faults.ts'
import type { FaultSwitches } from './faults.ts'
import { deviceChannel } from './osdp-channel.ts'
import type { LockModel } from './relay-board.ts'

export interface OsdpDeviceOptions {
  readonly platform: Platform
  /** Default 0. */
  readonly address?: number
  /** Its own base key, 16 bytes; null: it has the default key only. */
  readonly key?: Uint8Array | null
  /** Takes the default key too; default only while it has no own. */
  readonly installMode?: boolean
  /** Default: output 0 opens a lock that shows on input 0 within 30 ms. */
  readonly locks?: readonly LockModel[]
  /** Told of every change of an output. */
  readonly onChange?: (output: number, on: boolean) => void
}

/** A simulated OSDP device: a card reader with a LED and a buzzer, 4 outputs and 4 inputs. */
export interface OsdpDevice {
  readonly outputs: readonly boolean[]
  readonly inputs: readonly boolean[]
  /** Every command to an output that was carried out, oldest first; the last 10,000. */
  readonly outputCommands: readonly { readonly output: number; readonly control: number }[]
  /** The last LED and buzzer commands, as they came. */
  readonly led: Uint8Array | null
  readonly buzzer: Uint8Array | null
  readonly key: Uint8Array | null
  readonly isSecure: boolean
  /** By command code; an `exception` is a NAK with its code. */
  readonly faults: FaultSwitches
  /** A card is held before the reader; it is told at the next poll. At most 100 wait. */
  card(data: Uint8Array, bits?: number): void
  setInput(input: number, on: boolean): void
  tamper(on: boolean): void
  /** Answers BUSY to the next so many commands. */
  busy(times: number): void
  /** As when its power fails for a moment: outputs off, secure channel and numbers forgotten. */
  restart(): void
  /** Answers on this link until it ends. */
  serve(link: ByteLink): Promise<void>
}

const SIZE = 4
const MOST_LOGGED = 10_000
const MOST_CARDS = 100
const DEFAULT_LOCKS: readonly LockModel[] = [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }]
/** Vendor, model 1.2, serial 1234567, firmware 3.4.5. */
const IDENTITY = Uint8Array.of(0xca, 0xfe, 0x01, 1, 2, 0x87, 0xd6, 0x12, 0x00, 3, 4, 5)
const CAPABILITIES = Uint8Array.of(1, 1, SIZE, 2, 1, SIZE, 3, 1, 0, 4, 1, 1, 5, 1, 1, 9, 1, 1)
/** What may be asked outside of the secure channel. */
const PLAIN: ReadonlySet<number> = new Set([
  OSDP_COMMAND.id,
  OSDP_COMMAND.capabilities,
  OSDP_COMMAND.challenge,
  OSDP_COMMAND.panelCryptogram,
])

interface Said {
  readonly code: number
  readonly data?: Uint8Array
  readonly security?: Uint8Array
}
const nak = (code: number): Said => ({ code: OSDP_REPLY.nak, data: Uint8Array.of(code) })
const ACK: Said = { code: OSDP_REPLY.ack }

/** Makes a device. It does nothing until a link is served to it. */
export function osdpDevice(options: OsdpDeviceOptions): OsdpDevice {
  const { platform, address = 0, locks = DEFAULT_LOCKS } = options
  const codec = osdpCodec()
  const faults = faultSwitches()
  const handshake = deviceChannel(platform.random)
  const outputs = Array.from({ length: SIZE }, () => false)
  const inputs = Array.from({ length: SIZE }, () => false)
  const endTimers = new Map<number, Cancel>()
  const cards: Uint8Array[] = []
  const log: { output: number; control: number }[] = []
  let key = options.key ?? null
  let installMode = options.installMode ?? key === null
  let lastLed: Uint8Array | null = null
  let lastBuzzer: Uint8Array | null = null
  let tampered = false
  let busyTimes = 0
  let last: { sequence: number; code: number; bytes: Uint8Array } | null = null

  function setOutput(output: number, on: boolean): void {
    if (outputs[output] === on) return
    outputs[output] = on
    options.onChange?.(output, on)
    for (const lock of locks) {
      if (lock.coil === output) {
        platform.timers.after(
          on ? lock.openMs : lock.closeMs,
          () => void (outputs[output] === on && (inputs[lock.input] = on)),
        )
      }
    }
  }

  function onOutput([output = 0, control = 0, low = 0, high = 0]: Uint8Array): Said {
    if (output >= SIZE || control > 6) return nak(OSDP_NAK.cannotProcess)
    log.push({ output, control })
    if (log.length > MOST_LOGGED) log.shift()
    endTimers.get(output)?.()
    endTimers.delete(output)
    const on = control === 2 || control === 4 || control === 5
    setOutput(output, on)
    if (control === 5)
      endTimers.set(
        output,
        platform.timers.after((low | (high << 8)) * 100, () => setOutput(output, false)),
      )
    return ACK
  }

  const bits = (states: readonly boolean[]) => Uint8Array.from(states, Number)

  const answers: Readonly<Record<number, (data: Uint8Array, frame: OsdpFrame) => Said>> = {
    [OSDP_COMMAND.poll]() {
      const card = cards.shift()
      return card ? { code: OSDP_REPLY.card, data: card } : ACK
    },
    [OSDP_COMMAND.id]: () => ({ code: OSDP_REPLY.id, data: IDENTITY }),
    [OSDP_COMMAND.capabilities]: () => ({ code: OSDP_REPLY.capabilities, data: CAPABILITIES }),
    [OSDP_COMMAND.localStatus]: () => ({ code: OSDP_REPLY.localStatus, data: Uint8Array.of(tampered ? 1 : 0, 0) }),
    [OSDP_COMMAND.inputStatus]: () => ({ code: OSDP_REPLY.inputStatus, data: bits(inputs) }),
    [OSDP_COMMAND.outputStatus]: () => ({ code: OSDP_REPLY.outputStatus, data: bits(outputs) }),
    [OSDP_COMMAND.output]: onOutput,
    [OSDP_COMMAND.led](data) {
      lastLed = data
      return ACK
    },
    [OSDP_COMMAND.buzzer](data) {
      lastBuzzer = data
      return ACK
    },
    [OSDP_COMMAND.keySet](data) {
      if (!handshake.channel || data.length !== 18) return nak(OSDP_NAK.cannotProcess)
      key = data.slice(2)
      installMode = false
      return ACK
    },
    [OSDP_COMMAND.challenge](data, { security }) {
      if (!security || (security[1] === 0 && !installMode)) return nak(OSDP_NAK.noSecurity)
      return handshake.challenge(security, data, key) ?? nak(OSDP_NAK.noSecurity)
    },
    [OSDP_COMMAND.panelCryptogram]: (data) => handshake.prove(data) ?? nak(OSDP_NAK.noSecurity),
  }

  /** What the frame says, out of the channel where it came in one; a number is the code of a NAK. */
  function opened(frame: OsdpFrame): OsdpFrame | number {
    if (!frame.mac)
      return PLAIN.has(frame.code) || (key === null && !handshake.channel) ? frame : OSDP_NAK.securityRequired
    const plain = handshake.channel?.open(frame)
    if (plain) return plain
    handshake.drop()
    return OSDP_NAK.noSecurity
  }

  function reply(frame: OsdpFrame, refuse: number | null): Uint8Array {
    const inChannel = frame.mac !== null
    const plain = refuse === null ? opened(frame) : refuse
    const said =
      typeof plain === 'number'
        ? nak(plain)
        : (answers[plain.code]?.(plain.data, plain) ?? nak(OSDP_NAK.unknownCommand))
    const { address: at, sequence, check } = frame
    const out: OsdpFrame = {
      address: at,
      reply: true,
      sequence,
      check,
      security: said.security ?? null,
      code: said.code,
      data: said.data ?? new Uint8Array(0),
      mac: null,
    }
    const channel = inChannel && typeof plain !== 'number' ? handshake.channel : null
    return codec.encode(channel ? channel.seal(out) : out)
  }

  function forgetNumbers(): void {
    last = null
    handshake.drop()
  }

  function take(frame: OsdpFrame, refuse: number | null): Uint8Array {
    if (frame.sequence === 0) forgetNumbers()
    else if (last?.sequence === frame.sequence && last.code === frame.code) return last.bytes
    else if (!last || frame.sequence !== (last.sequence === 3 ? 1 : last.sequence + 1))
      return reply(frame, OSDP_NAK.sequence)
    const bytes = reply(frame, refuse)
    last = { sequence: frame.sequence, code: frame.code, bytes }
    return bytes
  }

  async function serveOne(link: ByteLink, frame: OsdpFrame): Promise<void> {
    if (frame.reply || (frame.address !== address && frame.address !== EVERYBODY)) return
    const hits = faults.hitting(frame.address, frame.code)
    if (hits.some((hit) => hit.kind === 'dead')) return
    if (busyTimes > 0) {
      busyTimes--
      const busy = {
        ...frame,
        reply: true,
        sequence: 0,
        security: null,
        code: OSDP_REPLY.busy,
        data: new Uint8Array(0),
        mac: null,
      }
      return answerWithFaults({ link, timers: platform.timers, hits, bytes: codec.encode(busy) }, -1)
    }
    const exception = hits.find((hit) => hit.kind === 'exception')
    await answerWithFaults({ link, timers: platform.timers, hits, bytes: take(frame, exception?.code ?? null) }, -1)
  }

  return {
    outputs,
    inputs,
    outputCommands: log,
    get led() {
      return lastLed
    },
    get buzzer() {
      return lastBuzzer
    },
    get key() {
      return key
    },
    get isSecure() {
      return handshake.channel !== null && !handshake.isDefault
    },
    faults,
    card(data, count = data.length * 8) {
      if (cards.length < MOST_CARDS) cards.push(Uint8Array.from([0, 0, count & 0xff, count >> 8, ...data]))
    },
    setInput: (input, on) => void (inputs[input] = on),
    tamper: (on) => void (tampered = on),
    busy: (times) => void (busyTimes = times),
    restart() {
      forgetNumbers()
      for (const cancel of endTimers.values()) cancel()
      endTimers.clear()
      outputs.forEach((_, output) => setOutput(output, false))
    },
    async serve(link) {
      const hears = osdpCodec()
      let order: Promise<void> = Promise.resolve()
      try {
        for await (const chunk of link.bytes)
          for (const frame of hears.push(chunk)) order = order.then(() => serveOne(link, frame))
      } catch {
        // The link broke: that is how a simulated device is unplugged too.
      } finally {
        await link.close()
      }
    },
  }
}
