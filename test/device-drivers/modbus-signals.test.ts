import { describe, expect, test } from 'vitest'
import type { Signal } from '../../device-drivers/kit/device.ts'
import { forEver, workbench, writesTo } from './workbench.ts'

const LAMPS = { siren: { output: 1 }, amber: { output: 2 }, green: { output: 3 }, passageInput: 5 }

async function ready(door: Record<string, unknown> = {}) {
  const bench = workbench({ door: { ...LAMPS, ...door } })
  await bench.untilReady()
  const signal = (name: Signal, seconds: number) =>
    bench.supervisor.execute('door', { kind: 'signal', signal: name, seconds }, forEver())
  return { ...bench, signal }
}

describe('signals', () => {
  test('switch on for the requested time, then off', async () => {
    const bench = await ready()
    const commandResult = await bench.world.settle(bench.signal('siren', 5))
    expect(commandResult).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged' })
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(4_900)
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(200)
    expect(bench.board.coils[1]).toBe(false)
  })

  test('switch off now with 0 seconds', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('amber', 60))
    await bench.world.settle(bench.signal('amber', 0))
    expect(bench.board.coils[2]).toBe(false)
    await bench.world.advance(61_000)
    expect(writesTo(bench.board, 2)).toEqual([false, true, false])
  })

  test('extend to the later end', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 2))
    await bench.world.advance(1_500)
    await bench.world.settle(bench.signal('siren', 2))
    await bench.world.advance(1_500)
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(600)
    expect(bench.board.coils[1]).toBe(false)
  })

  test('do not wait for a release', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.world.advance(300)
    const from = bench.world.clock.elapsed()
    await bench.world.settle(bench.signal('siren', 5))
    expect(bench.world.clock.elapsed() - from).toBeLessThan(50)
    expect((await bench.world.settle(commandResult)).detail).toBe('no_confirmation: input 0 did not change')
  })

  test('are written again after a reconnect until their time is over', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 30))
    bench.port.unplug()
    bench.board.restart()
    await bench.world.advance(5_000)
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(31_000)
    expect(bench.board.coils[1]).toBe(false)
  })

  test('fail while the device is away, and are written if it is back in time', async () => {
    const bench = await ready()
    bench.port.unplug()
    await bench.world.advance(1_000)
    expect(await bench.world.settle(bench.signal('siren', 120))).toMatchObject({ outcome: 'failed', commanded: false })
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[1]).toBe(true)
  })

  test('are off after the reconnect if their time is over', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 5))
    bench.port.unplug()
    await bench.world.advance(10_000)
    expect(bench.board.coils[1]).toBe(true)
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[1]).toBe(false)
  })

  test('are restored within about a second after a short power failure', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 30))
    bench.board.restart()
    await bench.world.advance(1_200)
    expect(bench.board.coils[1]).toBe(true)
    expect(
      bench.events.some(({ event }) => event.type === 'fault' && event.detail.startsWith('output 1 was off')),
    ).toBe(true)
  })

  test('work on a board that cannot report its outputs, which is not asked for ever', async () => {
    const seldom = [
      { kind: 'dead', most: 6 },
      { kind: 'exception', code: 4, most: 6 },
      { kind: 'exception', code: 1, most: 1 },
    ] as const
    for (const { most, ...fault } of seldom) {
      const bench = workbench({ door: LAMPS })
      let reads = 0
      bench.board.faults.on({ ...fault, functions: [1] })
      const { hitting } = bench.board.faults
      bench.board.faults.hitting = (unit, code) => {
        if (code === 1) reads++
        return hitting(unit, code)
      }
      await bench.untilReady()
      await bench.world.advance(60_000)
      expect([bench.supervisor.status('door')?.state, bench.port.opened]).toEqual(['ready', 1])
      expect(reads).toBeLessThanOrEqual(most)
      expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    }
  })

  test('report unknown for a lost answer, and are corrected', async () => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'dead', functions: [5], times: 1 })
    expect(await bench.world.settle(bench.signal('siren', 30))).toMatchObject({ outcome: 'unknown', commanded: true })
    await bench.world.advance(2_000)
    expect(bench.board.coils[1]).toBe(true)
  })

  const lost = { kind: 'dead', functions: [5], times: 1 } as const
  const busy = { kind: 'exception', code: 6, functions: [5], times: 4 } as const
  test.each([
    ['lost', lost],
    ['refused', busy],
  ])('repeat a siren’s ON or OFF that is %s on a board that cannot report its outputs', async (_, fault) => {
    const bench = workbench({ door: LAMPS })
    bench.board.faults.on({ kind: 'exception', code: 1, functions: [1] })
    await bench.untilReady()
    await bench.world.advance(5_000)
    const siren = () => bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds: 10 }, forEver())
    bench.board.faults.on(fault)
    await bench.world.settle(siren())
    await bench.world.advance(4_000)
    expect(bench.board.coils[1]).toBe(true)
    bench.board.faults.on(fault)
    await bench.world.advance(11_000)
    expect(bench.board.coils[1]).toBe(false)
    expect(bench.port.opened).toBe(1)
  })

  test('repeat a lost siren command at once, not at the next audit', async () => {
    const bench = await ready()
    bench.board.faults.on(lost)
    const commandResult = bench.signal('siren', 10)
    await bench.world.advance(550)
    expect(bench.board.coils[1]).toBe(true)
    expect(await commandResult).toMatchObject({ outcome: 'unknown' })
  })

  test('repeat the OFF of a release after three refusals', async () => {
    const bench = workbench({ door: LAMPS })
    bench.board.faults.on({ kind: 'exception', code: 1, functions: [1] })
    await bench.untilReady()
    const commandResult = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    bench.board.faults.on(busy)
    await bench.world.settle(commandResult)
    await bench.until(
      () => bench.events.some(({ event }) => event.type === 'fault' && event.detail.includes('may still be on')),
      5_000,
    )
    expect(bench.board.coils[0]).toBe(true)
    await bench.world.advance(3_000)
    expect(bench.board.coils[0]).toBe(false)
    expect(writesTo(bench.board, 0).filter(Boolean)).toHaveLength(1)
  })

  test('continue the audit after noise on the first ones', async () => {
    const bench = workbench({ door: LAMPS })
    bench.board.faults.on({ kind: 'dead', functions: [1], times: 2 })
    await bench.untilReady()
    await bench.world.advance(15_000)
    await bench.world.settle(
      bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds: 30 }, forEver()),
    )
    bench.board.restart()
    await bench.world.advance(1_200)
    expect(bench.board.coils[1]).toBe(true)
  })

  test('reject a signal that is not configured or lasts too long', async () => {
    const bench = await ready({ green: undefined })
    const refused = { outcome: 'failed', commanded: false }
    expect(await bench.signal('green', 5)).toMatchObject({
      ...refused,
      detail: expect.stringMatching(/^not_supported: no green/),
    })
    for (const seconds of [-1, 3_601, NaN, Infinity]) {
      expect(await bench.signal('siren', seconds)).toMatchObject({
        ...refused,
        detail: expect.stringMatching(/^not_supported/),
      })
    }
  })
})

describe('inputs', () => {
  test('emit one passage for each rising edge, and none for a beam that is broken at connect', async () => {
    const bench = workbench({ door: LAMPS })
    bench.board.setInput(5, true)
    await bench.untilReady()
    await bench.world.advance(100)
    const passages = () => bench.events.filter(({ event }) => event.type === 'passage').length
    expect(passages()).toBe(0)
    for (const on of [false, true, false, true]) {
      bench.board.setInput(5, on)
      await bench.world.advance(50)
    }
    expect(passages()).toBe(2)
  })

  test('report every change of a watched input', async () => {
    const bench = await ready()
    await bench.world.settle(bench.release())
    await bench.world.advance(500)
    const changes = bench.events.flatMap(({ event }) => (event.type === 'input' ? [[event.input, event.on]] : []))
    expect(changes).toEqual([
      [0, true],
      [0, false],
    ])
  })

  test('are read without the addresses between distant inputs', async () => {
    const bench = await ready({ confirmInput: 7, passageInput: 0 })
    bench.board.setInput(0, true)
    await bench.world.advance(50)
    expect(bench.events.map(({ event }) => event.type)).toEqual(['input', 'passage'])
  })
})

describe('stop', () => {
  test('switches every output off', async () => {
    const bench = await ready()
    await bench.world.settle(Promise.all([bench.signal('siren', 60), bench.signal('green', 60)]))
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.board.coils.some(Boolean)).toBe(false)
    expect(bench.supervisor.status('door')?.state).toBe('stopped')
    await bench.world.advance(120_000)
    expect(bench.world.pending).toBe(0)
  })

  test('switches off during a pulse, and the release is unknown', async () => {
    const bench = await ready({ pulseMs: 10_000 })
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.board.coils[0]).toBe(false)
    expect(await commandResult).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('ends in bounded time with a mute board', async () => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'dead' })
    const from = bench.world.clock.elapsed()
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.world.clock.elapsed() - from).toBeLessThanOrEqual(3_000)
  })

  test('fails later commands', async () => {
    const bench = await ready()
    await bench.world.settle(bench.supervisor.stop())
    expect(await bench.release()).toMatchObject({ outcome: 'failed', commanded: false })
    expect(await bench.signal('siren', 5)).toMatchObject({ outcome: 'failed', commanded: false })
    await bench.world.advance(10_000)
    expect(bench.world.pending).toBe(0)
  })
})
