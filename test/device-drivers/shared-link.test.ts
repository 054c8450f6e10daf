import { describe, expect, test } from 'vitest'
import type { RelayBoard } from '../../simulators/devices/modbus.ts'
import { ADDRESS, forEver, workbench, writesTo } from './workbench.ts'

const link = { tcp: ADDRESS }
const LEFT = { deviceId: 'left', driver: 'modbus', link, unit: 1, output: 0, confirmInput: 0 }
const RIGHT = { deviceId: 'right', driver: 'modbus', link, unit: 2, output: 1, confirmInput: 1 }
const LOCKS = [
  { coil: 0, input: 0, openMs: 30, closeMs: 30 },
  { coil: 1, input: 1, openMs: 30, closeMs: 30 },
]

/** Two devices on one link; the simulated board answers as both units. */
function two(framing: 'rtu' | 'tcp', right: Record<string, unknown> = {}) {
  const devices = [
    { ...LEFT, framing },
    { ...RIGHT, framing, ...right },
  ]
  return workbench({ devices, board: { units: [1, 2], locks: LOCKS } })
}
const states = (bench: ReturnType<typeof two>) => bench.supervisor.statuses.map((status) => status.state)

describe.each(['tcp', 'rtu'] as const)('two devices on one %s link', (framing) => {
  test('open the link once and become ready', async () => {
    const bench = two(framing)
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    expect(bench.port.opened).toBe(1)
  })

  test('confirm releases at the same time', async () => {
    const bench = two(framing)
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    const commandResult = await bench.world.settle(Promise.all([bench.release('left'), bench.release('right')]))
    expect(commandResult.map((t) => t.outcome)).toEqual(['confirmed', 'confirmed'])
    const pulses = (board: RelayBoard) => [0, 1].map((coil) => writesTo(board, coil).slice(1))
    await bench.world.advance(500)
    expect(pulses(bench.board)).toEqual([
      [true, false],
      [true, false],
    ])
  })

  test('reconnect together over one new link', async () => {
    const bench = two(framing)
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    bench.port.cut()
    await bench.until(() => states(bench).every((state) => state !== 'ready'))
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    expect(bench.port.opened).toBe(2)
  })

  test('work while one unit is dead', async () => {
    const bench = two(framing)
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    bench.board.faults.on({ kind: 'dead', unit: 2 })
    await bench.until(() => bench.supervisor.status('right')?.state === 'degraded')
    const from = bench.states.length
    await bench.world.advance(120_000)
    expect(bench.port.opened).toBe(1)
    expect(bench.states.slice(from).filter((status) => status.deviceId === 'left')).toEqual([])
    expect((await bench.world.settle(bench.release('left'))).outcome).toBe('confirmed')
    bench.board.faults.heal()
    await bench.until(() => bench.supervisor.status('right')?.state === 'ready')
  })

  test('reopen the link when no device answers', async () => {
    const bench = two(framing)
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    bench.board.faults.on({ kind: 'dead' })
    await bench.until(() => bench.port.opened > 1)
    bench.board.faults.heal()
    await bench.until(() => states(bench).every((state) => state === 'ready'))
  })

  test('sound a siren during the release of the other', async () => {
    const bench = two(framing, { siren: { output: 3 } })
    await bench.until(() => states(bench).every((state) => state === 'ready'))
    bench.board.stick(0, false)
    const commandResult = bench.release('left')
    await bench.world.advance(400)
    const from = bench.world.clock.elapsed()
    await bench.world.settle(
      bench.supervisor.execute('right', { kind: 'signal', signal: 'siren', seconds: 5 }, forEver()),
    )
    expect(bench.world.clock.elapsed() - from).toBeLessThan(50)
    expect((await bench.world.settle(commandResult)).outcome).toBe('failed')
  })
})
