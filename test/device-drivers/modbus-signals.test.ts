import { describe, expect, test } from 'vitest'
import type { Signal } from '../../device-drivers/drivers/device.ts'
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
  test('on for as long as asked, then off', async () => {
    const bench = await ready()
    const told = await bench.world.settle(bench.signal('siren', 5))
    expect(told).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged' })
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(4_900)
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(200)
    expect(bench.board.coils[1]).toBe(false)
  })

  test('0 seconds: off now', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('amber', 60))
    await bench.world.settle(bench.signal('amber', 0))
    expect(bench.board.coils[2]).toBe(false)
    await bench.world.advance(61_000)
    expect(writesTo(bench.board, 2)).toEqual([false, true, false])
  })

  test('asked again, the later end counts', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 2))
    await bench.world.advance(1_500)
    await bench.world.settle(bench.signal('siren', 2))
    await bench.world.advance(1_500)
    expect(bench.board.coils[1]).toBe(true)
    await bench.world.advance(600)
    expect(bench.board.coils[1]).toBe(false)
  })

  test('a siren does not wait for a release that waits for its confirmation', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const told = bench.release()
    await bench.world.advance(300)
    const from = bench.world.clock.elapsed()
    await bench.world.settle(bench.signal('siren', 5))
    expect(bench.world.clock.elapsed() - from).toBeLessThan(50)
    expect((await bench.world.settle(told)).detail).toBe('no_confirmation: input 0 did not change')
  })

  test('after a reconnect it is written again, until its time is over', async () => {
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

  test('asked for while the device is away: failed, and written when it is back in time', async () => {
    const bench = await ready()
    bench.port.unplug()
    await bench.world.advance(1_000)
    expect(await bench.world.settle(bench.signal('siren', 120))).toMatchObject({ outcome: 'failed', commanded: false })
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[1]).toBe(true)
  })

  test('its time over while the device is away: off when it is back', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 5))
    bench.port.unplug()
    await bench.world.advance(10_000)
    expect(bench.board.coils[1]).toBe(true)
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[1]).toBe(false)
  })

  test('a board that lost its power for a moment is put right within about a second', async () => {
    const bench = await ready()
    await bench.world.settle(bench.signal('siren', 30))
    bench.board.restart()
    await bench.world.advance(1_200)
    expect(bench.board.coils[1]).toBe(true)
    expect(
      bench.events.some(({ event }) => event.type === 'fault' && event.detail.startsWith('output 1 was off')),
    ).toBe(true)
  })

  test('a board that cannot tell its outputs is ready all the same and is not asked for ever', async () => {
    const seldom = [
      { kind: 'dead', most: 6 },
      { kind: 'exception', code: 4, most: 6 },
      { kind: 'exception', code: 1, most: 1 },
    ] as const
    for (const { most, ...fault } of seldom) {
      const bench = workbench({ door: LAMPS })
      let asked = 0
      bench.board.faults.on({ ...fault, functions: [1] })
      const { hitting } = bench.board.faults
      bench.board.faults.hitting = (unit, code) => {
        if (code === 1) asked++
        return hitting(unit, code)
      }
      await bench.untilReady()
      await bench.world.advance(60_000)
      expect([bench.supervisor.status('door')?.state, bench.port.opened]).toEqual(['ready', 1])
      expect(asked).toBeLessThanOrEqual(most)
      expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    }
  })

  test('a lost answer is unknown and the signal is put right all the same', async () => {
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
  ])('a board that does not tell its outputs: a siren’s ON or OFF that is %s is written again', async (_, fault) => {
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

  test('a lost frame of a siren is written again at once, not with the next look', async () => {
    const bench = await ready()
    bench.board.faults.on(lost)
    const told = bench.signal('siren', 10)
    await bench.world.advance(550)
    expect(bench.board.coils[1]).toBe(true)
    expect(await told).toMatchObject({ outcome: 'unknown' })
  })

  test('the OFF of a release that is refused three times is written again', async () => {
    const bench = workbench({ door: LAMPS })
    bench.board.faults.on({ kind: 'exception', code: 1, functions: [1] })
    await bench.untilReady()
    const told = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    bench.board.faults.on(busy)
    await bench.world.settle(told)
    await bench.until(
      () => bench.events.some(({ event }) => event.type === 'fault' && event.detail.includes('may still be on')),
      5_000,
    )
    expect(bench.board.coils[0]).toBe(true)
    await bench.world.advance(3_000)
    expect(bench.board.coils[0]).toBe(false)
    expect(writesTo(bench.board, 0).filter(Boolean)).toHaveLength(1)
  })

  test('noise on the first looks does not end the looking', async () => {
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

  test('a signal that is not configured, or lasts too long, is not supported', async () => {
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
  test('passage: one event for each rising edge, none for a beam that is broken when the device connects', async () => {
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

  test('every change of a watched input is told', async () => {
    const bench = await ready()
    await bench.world.settle(bench.release())
    await bench.world.advance(500)
    const changes = bench.events.flatMap(({ event }) => (event.type === 'input' ? [[event.input, event.on]] : []))
    expect(changes).toEqual([
      [0, true],
      [0, false],
    ])
  })

  test('inputs far apart are read without asking for what lies between', async () => {
    const bench = await ready({ confirmInput: 7, passageInput: 0 })
    bench.board.setInput(0, true)
    await bench.world.advance(50)
    expect(bench.events.map(({ event }) => event.type)).toEqual(['input', 'passage'])
  })
})

describe('stop', () => {
  test('writes every output off', async () => {
    const bench = await ready()
    await bench.world.settle(Promise.all([bench.signal('siren', 60), bench.signal('green', 60)]))
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.board.coils.some(Boolean)).toBe(false)
    expect(bench.supervisor.status('door')?.state).toBe('stopped')
    await bench.world.advance(120_000)
    expect(bench.world.pending).toBe(0)
  })

  test('within a pulse: off, and the release is unknown', async () => {
    const bench = await ready({ pulseMs: 10_000 })
    bench.board.stick(0, false)
    const told = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.board.coils[0]).toBe(false)
    expect(await told).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('takes a bounded time with a board that says nothing', async () => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'dead' })
    const from = bench.world.clock.elapsed()
    await bench.world.settle(bench.supervisor.stop())
    expect(bench.world.clock.elapsed() - from).toBeLessThanOrEqual(3_000)
  })

  test('commands after it answer failed', async () => {
    const bench = await ready()
    await bench.world.settle(bench.supervisor.stop())
    expect(await bench.release()).toMatchObject({ outcome: 'failed', commanded: false })
    expect(await bench.signal('siren', 5)).toMatchObject({ outcome: 'failed', commanded: false })
    await bench.world.advance(10_000)
    expect(bench.world.pending).toBe(0)
  })
})
