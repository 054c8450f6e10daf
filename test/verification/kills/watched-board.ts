import type { Platform } from '../../../policy/platform.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { serveTcp } from '../../../simulators/devices/serve.ts'

/** Simulated relay board that counts pulses. */
export interface WatchedBoard {
  /** host:port */
  readonly address: string
  /** Number of times that the output was switched on; default: output 0. */
  pulses(coil?: number): number
  /** Called as soon as an output has changed. */
  onChange: (coil: number, on: boolean) => void
  close(): Promise<void>
}

/** Starts a simulated board on a free port. Output 0 moves a lock, and input 0 follows at once. */
export async function watchedBoard(platform: Platform): Promise<WatchedBoard> {
  const count = new Map<number, number>()
  const simulated = new RelayBoard({
    platform,
    locks: [{ coil: 0, input: 0, openMs: 0, closeMs: 0 }],
    onChange({ coil, on }) {
      if (on) count.set(coil, (count.get(coil) ?? 0) + 1)
      board.onChange(coil, on)
    },
  })
  const service = await serveTcp({ port: 0, serve: (link) => simulated.serve(link) })
  const board: WatchedBoard = {
    address: `127.0.0.1:${service.port}`,
    pulses: (coil = 0) => count.get(coil) ?? 0,
    onChange: () => undefined,
    close: () => service.close(),
  }
  return board
}
