import type { Platform } from '../../policy/platform.ts'
import type { ModbusFraming } from '../../device-drivers/protocols/modbus/frame.ts'
import { ILLEGAL_DATA_ADDRESS, MODBUS_FUNCTIONS } from '../../device-drivers/protocols/modbus/functions.ts'
import { FLASH_COILS } from '../../device-drivers/protocols/modbus/pdu.ts'
import type { ModbusMessage, ModbusRefusal } from '../../device-drivers/protocols/modbus/pdu.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { faultSwitches } from './faults.ts'
import type { FaultSwitches } from './faults.ts'
import { answerRequests } from './modbus-slave.ts'

/** A lock, detacher or barrier behind a coil: its sense input follows the coil after a delay. */
export interface LockModel {
  readonly coil: number
  readonly input: number
  /** From the coil going on to the input going on, ms; 0: at once. */
  readonly openMs: number
  /** From the coil going off to the input going off, ms; 0: at once. */
  readonly closeMs: number
}

/** One change of a coil. */
export interface CoilChange {
  /** `platform.clock.elapsed()` when it changed, ms. */
  readonly at: number
  readonly coil: number
  readonly on: boolean
}

export interface RelayBoardOptions {
  readonly platform: Platform
  /** Default `tcp`: Modbus TCP. */
  readonly framing?: ModbusFraming
  /** The addresses at which this board answers; default [1]. Several make one board stand for many. */
  readonly units?: readonly number[]
  /** Understands the "flash on" command of Waveshare boards; default false. */
  readonly flash?: boolean
  /** Default: coil 0 opens a lock that shows on input 0 within 30 ms. */
  readonly locks?: readonly LockModel[]
  /** Told of every change of a coil, for showing it. */
  readonly onChange?: (change: CoilChange) => void
}

/** A simulated relay and input board with 8 coils, 8 discrete inputs and 8 holding registers. */
export interface RelayBoard {
  readonly coils: readonly boolean[]
  readonly inputs: readonly boolean[]
  readonly registers: readonly number[]
  /** Every change of a coil, oldest first; the last 10,000. */
  readonly log: readonly CoilChange[]
  /** Every write of a coil, changing or not, oldest first; the last 10,000. */
  readonly writes: readonly CoilChange[]
  readonly faults: FaultSwitches
  /** Presses a sensor: passage, door, tamper. */
  setInput(input: number, on: boolean): void
  /** The input shows this whatever the lock does; null frees it. */
  stick(input: number, on: boolean | null): void
  /** As when its power fails for a moment: every coil goes off, links stay. */
  restart(): void
  /** Answers on this link until it ends. Any number of links at a time. */
  serve(link: ByteLink): Promise<void>
}

const SIZE = 8
const MOST_LOGGED = 10_000
const DEFAULT_LOCKS: readonly LockModel[] = [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }]

/** Makes a board. It does nothing until a link is served to it. */
export function relayBoard(options: RelayBoardOptions): RelayBoard {
  const { clock, timers } = options.platform
  const locks = options.locks ?? DEFAULT_LOCKS
  const units = new Set(options.units ?? [1])
  const coils = Array.from({ length: SIZE }, () => false)
  const inputs = Array.from({ length: SIZE }, () => false)
  const registers = Array.from({ length: SIZE }, () => 0)
  const stuck = new Map<number, boolean>()
  const log: CoilChange[] = []
  const writes: CoilChange[] = []
  const faults = faultSwitches()

  function note(list: CoilChange[], change: CoilChange): void {
    list.push(change)
    if (list.length > MOST_LOGGED) list.shift()
  }

  function setCoil(coil: number, on: boolean): void {
    if (coils[coil] === on) return
    coils[coil] = on
    const change = { at: clock.elapsed(), coil, on }
    note(log, change)
    options.onChange?.(change)
    for (const lock of locks) {
      if (lock.coil !== coil) continue
      const delayMs = on ? lock.openMs : lock.closeMs
      // Not by a timer: on a busy machine the next read would come before it, and the lock had not moved for whoever asks.
      if (delayMs === 0) inputs[lock.input] = on
      else timers.after(delayMs, () => void (coils[coil] === on && (inputs[lock.input] = on)))
    }
  }

  const shown = (input: number): boolean => stuck.get(input) ?? inputs[input] ?? false

  const read: Partial<Record<ModbusMessage['name'], (at: number) => number>> = {
    readCoils: (at) => (coils[at] ? 1 : 0),
    readDiscreteInputs: (at) => (shown(at) ? 1 : 0),
    readHoldingRegisters: (at) => registers[at] ?? 0,
  }

  function write(name: ModbusMessage['name'], at: number, value: number): void {
    if (MODBUS_FUNCTIONS[name].unit === 'word') {
      registers[at] = value
      return
    }
    note(writes, { at: clock.elapsed(), coil: at, on: value === 1 })
    setCoil(at, value === 1)
  }

  function answer(request: ModbusMessage): ModbusMessage | ModbusRefusal {
    const { name, address, quantity, values, flash } = request
    if (flash !== undefined && options.flash && address - FLASH_COILS < SIZE) {
      const coil = address - FLASH_COILS
      write(name, coil, 1)
      timers.after(flash * 100, () => setCoil(coil, false))
      return request
    }
    if (address + quantity > SIZE) return { functionCode: MODBUS_FUNCTIONS[name].code, exception: ILLEGAL_DATA_ADDRESS }
    const cell = read[name]
    if (cell)
      return { name, address: 0, quantity: 0, values: Array.from({ length: quantity }, (_, i) => cell(address + i)) }
    values.forEach((value, i) => write(name, address + i, value))
    return request
  }

  return {
    coils,
    get inputs() {
      return Array.from({ length: SIZE }, (_, i) => shown(i))
    },
    registers,
    log,
    writes,
    faults,
    setInput(input, on) {
      if (input < SIZE) inputs[input] = on
    },
    stick(input, on) {
      if (on === null) stuck.delete(input)
      else stuck.set(input, on)
    },
    restart: () => coils.forEach((_, coil) => setCoil(coil, false)),
    serve: (link) =>
      answerRequests({ link, framing: options.framing ?? 'tcp', units, answer, faults, platform: options.platform }),
  }
}
