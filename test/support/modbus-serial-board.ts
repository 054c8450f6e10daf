import { createRequire } from 'node:module'
import { freePort } from './ports.ts'

/** Types of the used part of modbus-serial, which has no types for the vector of its server. */
interface Vector {
  getCoil(address: number, unit: number): boolean
  setCoil(address: number, value: boolean, unit: number): void
  getDiscreteInput(address: number, unit: number): boolean
}
interface ServerTcp {
  close(done: () => void): void
  on(event: 'initialized' | 'socketError', listener: () => void): void
}

/** A relay board with an independent Modbus implementation, so that the commands are proven to be valid Modbus. */
export interface IndependentBoard {
  address: string
  /** Every change of an output, in order. */
  readonly changes: { coil: number; on: boolean }[]
  pulses(coil?: number): number
  /** Called after each output change. */
  onChange: (coil: number, on: boolean) => void
  close(): Promise<void>
}

/** Starts the board. Output 0 drives a lock, and input 0 follows at once. */
export async function independentBoard(): Promise<IndependentBoard> {
  const { ServerTCP } = createRequire(import.meta.url)('modbus-serial') as {
    ServerTCP: new (vector: Vector, options: object) => ServerTcp
  }
  const coils = new Array<boolean>(16).fill(false)
  const board: IndependentBoard = {
    address: '',
    changes: [],
    pulses: (coil = 0) => board.changes.filter((c) => c.coil === coil && c.on).length,
    onChange: () => undefined,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
  const vector: Vector = {
    getCoil: (address) => coils[address] ?? false,
    setCoil(address, value) {
      if (coils[address] === value) return
      coils[address] = value
      board.changes.push({ coil: address, on: value })
      board.onChange(address, value)
    },
    getDiscreteInput: (address) => coils[address] ?? false,
  }
  const port = await freePort()
  const server = new ServerTCP(vector, { host: '127.0.0.1', port, unitID: 1 })
  server.on('socketError', () => undefined)
  await new Promise<void>((resolve) => server.on('initialized', resolve))
  board.address = `127.0.0.1:${port}`
  return board
}
