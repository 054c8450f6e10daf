import {
  type ModbusFraming,
  type ModbusFrame,
  ILLEGAL_DATA_ADDRESS,
  MODBUS_FUNCTIONS,
  FLASH_COILS,
  type ModbusMessage,
  type ModbusRefusal,
  decodeRequest,
  encodePdu,
  encodeRefusal,
} from '../../device-drivers/modbus/protocol/pdu.ts'
import type { Platform, Cancel } from '../../policy/platform.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { echoingLink, answerWithFaults, faultSwitches, type Fault, type FaultSwitches } from './faults.ts'
import type { ResyncingCodec } from '../../device-drivers/kit/protocol/codec.ts'
import { rtuCodec, tcpCodec } from '../../device-drivers/modbus/protocol/frames.ts'

/** What real boards answer, and the standard does not say. */
interface AnswerQuirks {
  /** Functions that the board answers with the request itself, whatever the values. */
  readonly repeatedFunctions?: readonly number[]
  /** The board sends the bytes of bits in reverse order (Waveshare Modbus RTU Relay 32CH). */
  readonly reversedBytes?: boolean
  /** Unit in each answer, whatever the request says (Modbus TCP). */
  readonly answersAs?: number
}

interface ModbusServerOptions {
  readonly link: ByteLink
  readonly framing: ModbusFraming
  readonly units: ReadonlySet<number>
  /** Executes a valid request. */
  answer(request: ModbusMessage): ModbusMessage | ModbusRefusal
  readonly faults: FaultSwitches
  readonly quirks?: AnswerQuirks
  readonly platform: Platform
}

/** Silence that ends a request with an unknown function code, ms. */
const SILENCE_MS = 20

/** Functions whose answers contain bits: read coils, read discrete inputs. */
const BITS: ReadonlySet<number> = new Set([1, 2])

const CODECS: Record<ModbusFraming, () => ResyncingCodec<ModbusFrame>> = {
  rtu: () => rtuCodec('request'),
  tcp: () => tcpCodec('request'),
}

/** Serves Modbus on one link, with the active faults. Resolves when the link ends. */
async function serveModbus(options: ModbusServerOptions): Promise<void> {
  const { link, framing, units, faults, quirks = {} } = options
  const { timers } = options.platform
  const codec = CODECS[framing]()
  let cancelSilence: Cancel = () => {}
  let order: Promise<void> = Promise.resolve()

  function handle(frame: ModbusFrame, hits: readonly Fault[]): Uint8Array {
    const exception = hits.find((hit) => hit.kind === 'exception')
    const request = decodeRequest(frame.pdu)
    if (exception) return encodeRefusal({ functionCode: frame.pdu[0] ?? 0, exception: exception.code })
    if ('exception' in request) return encodeRefusal(request)
    const answer = options.answer(request)
    if ('exception' in answer) return encodeRefusal(answer)
    const pdu = encodePdu('answer', answer)
    if (quirks.reversedBytes && BITS.has(pdu[0] ?? 0)) pdu.subarray(2).reverse()
    return pdu
  }

  async function serveOne(frame: ModbusFrame): Promise<void> {
    if (!units.has(frame.unit)) return
    const hits = faults.hitting(frame.unit, frame.pdu[0] ?? 0)
    if (hits.some((hit) => hit.kind === 'dead')) return
    const isRepeated = quirks.repeatedFunctions?.includes(frame.pdu[0] ?? 0)
    const unit = quirks.answersAs ?? frame.unit
    const bytes = codec.encode({ ...frame, unit, pdu: isRepeated ? frame.pdu : handle(frame, hits) })
    await answerWithFaults({ link, timers, hits, bytes }, framing === 'rtu' ? -1 : 0)
  }

  // Answers keep the order of the requests, even if one answer is delayed.
  function take(frames: readonly ModbusFrame[]): void {
    for (const frame of frames) order = order.then(() => serveOne(frame))
  }

  try {
    for await (const chunk of link.bytes) {
      cancelSilence()
      take(codec.push(chunk))
      if (codec.held > 0) cancelSilence = timers.after(SILENCE_MS, () => take(codec.silence()))
    }
  } catch {
    // Ignores the error, because a broken link is like an unplugged board.
  } finally {
    cancelSilence()
    await link.close()
  }
}

/** A lock, detacher or barrier behind a coil: its sense input follows the coil after a delay. */
export interface LockModel {
  readonly coil: number
  readonly input: number
  /** Delay from coil on to input on, ms; 0: at once. */
  readonly openMs: number
  /** Delay from coil off to input off, ms; 0: at once. */
  readonly closeMs: number
}

/** One change of a coil. */
interface CoilChange {
  /** `platform.clock.elapsed()`, ms. */
  readonly at: number
  readonly coil: number
  readonly on: boolean
}

export interface RelayBoardOptions {
  readonly platform: Platform
  /** Default `tcp`: Modbus TCP. */
  readonly framing?: ModbusFraming
  /** Unit addresses that the board answers; default [1]. Several addresses simulate several boards. */
  readonly units?: readonly number[]
  /** True if the board supports the "flash on" command of Waveshare; default false. */
  readonly flash?: boolean
  /** Default: coil 0 opens a lock, and input 0 turns on 30 ms later. */
  readonly locks?: readonly LockModel[]
  /** Called at each change of a coil. */
  readonly onChange?: (change: CoilChange) => void
  readonly quirks?: RelayBoardQuirks
}

/** What real boards and adapters do, and the standard does not say. Default: nothing. */
export interface RelayBoardQuirks extends AnswerQuirks {
  /** Number of coils and of inputs; default 8. */
  readonly size?: number
  /** The adapter repeats everything that the agent sends. */
  readonly echo?: boolean
  /** Functions that the board ignores without an exception. */
  readonly silentFunctions?: readonly number[]
  /** Time until each answer, ms. */
  readonly answerMs?: number
}

/** A relay board as LC-Tech ships it: Modbus RTU at address 255. */
export const RELAY_BOARD_EX_WORKS = { framing: 'rtu', units: [255] } as const satisfies Partial<RelayBoardOptions>

const DEFAULT_SIZE = 8
const MAX_LOGGED = 10_000
const DEFAULT_LOCKS: readonly LockModel[] = [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }]

/** A simulated relay and input board with coils, discrete inputs and holding registers, by default 8 of each. */
export class RelayBoard {
  readonly #options: RelayBoardOptions
  readonly #locks: readonly LockModel[]
  readonly #units: Set<number>
  readonly #quirks: RelayBoardQuirks
  readonly #size: number
  readonly coils: boolean[]
  readonly #inputs: boolean[]
  readonly registers: number[]
  readonly #stuck = new Map<number, boolean>()
  /** Every change of a coil, oldest first; the last 10,000. */
  readonly log: CoilChange[] = []
  /** Every write of a coil, also without a change, oldest first; the last 10,000. */
  readonly writes: CoilChange[] = []
  readonly faults = faultSwitches()
  readonly #read: Partial<Record<ModbusMessage['name'], (at: number) => number>> = {
    readCoils: (at) => (this.coils[at] ? 1 : 0),
    readDiscreteInputs: (at) => (this.#inputState(at) ? 1 : 0),
    readHoldingRegisters: (at) => this.registers[at] ?? 0,
  }

  constructor(options: RelayBoardOptions) {
    this.#options = options
    this.#locks = options.locks ?? DEFAULT_LOCKS
    this.#units = new Set(options.units ?? [1])
    this.#quirks = options.quirks ?? {}
    this.#size = this.#quirks.size ?? DEFAULT_SIZE
    this.coils = Array.from({ length: this.#size }, () => false)
    this.#inputs = Array.from({ length: this.#size }, () => false)
    this.registers = Array.from({ length: this.#size }, () => 0)
    for (const code of this.#quirks.silentFunctions ?? []) this.faults.on({ kind: 'dead', functions: [code] })
    if (this.#quirks.answerMs) this.faults.on({ kind: 'delay', ms: this.#quirks.answerMs })
  }

  get inputs(): readonly boolean[] {
    return Array.from({ length: this.#size }, (_, i) => this.#inputState(i))
  }

  /** Sets the input of a sensor, such as a passage, door or tamper sensor. */
  readonly setInput = (input: number, on: boolean): void => {
    if (input < this.#size) this.#inputs[input] = on
  }

  /** Fixes the state of an input, as if it were stuck. With null, the input is free again. */
  stick(input: number, on: boolean | null): void {
    if (on === null) this.#stuck.delete(input)
    else this.#stuck.set(input, on)
  }

  /** Simulates a short power failure. All coils switch off; links remain open. */
  readonly restart = (): void => {
    return this.coils.forEach((_, coil) => this.#setCoil(coil, false))
  }

  /** Serves a link until it ends; any number of links. */
  readonly serve = (link: ByteLink): Promise<void> => {
    return serveModbus({
      link: this.#quirks.echo ? echoingLink(link) : link,
      quirks: this.#quirks,
      framing: this.#options.framing ?? 'tcp',
      units: this.#units,
      answer: (request) => this.#answer(request),
      faults: this.faults,
      platform: this.#options.platform,
    })
  }

  #record(list: CoilChange[], change: CoilChange): void {
    list.push(change)
    if (list.length > MAX_LOGGED) list.shift()
  }

  #setCoil(coil: number, on: boolean): void {
    if (this.coils[coil] === on) return
    this.coils[coil] = on
    const change = { at: this.#options.platform.clock.elapsed(), coil, on }
    this.#record(this.log, change)
    this.#options.onChange?.(change)
    for (const lock of this.#locks) {
      if (lock.coil !== coil) continue
      const delayMs = on ? lock.openMs : lock.closeMs
      // With a delay of 0 no timer is used, because on a busy machine the next read could come before the timer fires.
      if (delayMs === 0) this.#inputs[lock.input] = on
      else
        this.#options.platform.timers.after(
          delayMs,
          () => void (this.coils[coil] === on && (this.#inputs[lock.input] = on)),
        )
    }
  }

  #inputState(input: number): boolean {
    return this.#stuck.get(input) ?? this.#inputs[input] ?? false
  }

  #write(name: ModbusMessage['name'], at: number, value: number): void {
    if (MODBUS_FUNCTIONS[name].unit === 'word') {
      this.registers[at] = value
      return
    }
    this.#record(this.writes, { at: this.#options.platform.clock.elapsed(), coil: at, on: value === 1 })
    this.#setCoil(at, value === 1)
  }

  #answer(request: ModbusMessage): ModbusMessage | ModbusRefusal {
    const { name, address, quantity, values, flash } = request
    if (flash !== undefined && this.#options.flash && address - FLASH_COILS < this.#size) {
      const coil = address - FLASH_COILS
      this.#write(name, coil, 1)
      this.#options.platform.timers.after(flash * 100, () => this.#setCoil(coil, false))
      return request
    }
    if (address + quantity > this.#size)
      return { functionCode: MODBUS_FUNCTIONS[name].code, exception: ILLEGAL_DATA_ADDRESS }
    const cell = this.#read[name]
    if (cell)
      return { name, address: 0, quantity: 0, values: Array.from({ length: quantity }, (_, i) => cell(address + i)) }
    values.forEach((value, i) => this.#write(name, address + i, value))
    return request
  }
}
