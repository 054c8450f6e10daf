import { describe, expect, test } from 'vitest'
import { RELEASE, workbench, writesTo } from './workbench.ts'

describe.each(['tcp', 'rtu'] as const)('release over Modbus %s', (framing) => {
  const ready = async (door: Record<string, unknown> = {}) => {
    const bench = workbench({ door: { framing, ...door } })
    await bench.untilReady()
    return bench
  }
  /** Writes of the releasing output since the board became ready. */
  const pulse = (bench: Awaited<ReturnType<typeof ready>>, from: number) => writesTo(bench.board, 0).slice(from)

  test('switches the output off before it is ready', async () => {
    const bench = await ready()
    expect(writesTo(bench.board, 0)).toEqual([false])
  })

  test('confirms when the input changes, with one ON, one OFF and a pulse of the set length', async () => {
    const bench = await ready()
    const before = bench.board.log.length
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'input_changed: input 0 changed to 1',
    })
    await bench.world.advance(500)
    const [on, off] = bench.board.log.slice(before)
    expect(pulse(bench, 1)).toEqual([true, false])
    expect((off?.at ?? 0) - (on?.at ?? 0)).toBeGreaterThanOrEqual(200)
    expect((off?.at ?? 0) - (on?.at ?? 0)).toBeLessThan(230)
  })

  test('returns the outcome while a long pulse still runs', async () => {
    const bench = await ready({ pulseMs: 5_000 })
    const from = bench.world.clock.elapsed()
    await bench.world.settle(bench.release())
    expect(bench.world.clock.elapsed() - from).toBeLessThan(200)
    expect(bench.board.coils[0]).toBe(true)
    await bench.world.advance(5_100)
    expect(bench.board.coils[0]).toBe(false)
  })

  test('fails if nothing moves, but not before 1 s after the pulse', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const from = bench.world.clock.elapsed()
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult).toEqual({
      outcome: 'failed',
      commanded: true,
      detail: 'no_confirmation: input 0 did not change',
    })
    expect(bench.world.clock.elapsed() - from).toBeGreaterThanOrEqual(1_200)
    expect(bench.world.clock.elapsed() - from).toBeLessThan(1_400)
  })

  test('confirms if the input changes within 1 s after the pulse', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.world.advance(1_000)
    bench.board.stick(0, true)
    expect((await bench.world.settle(commandResult)).outcome).toBe('confirmed')
  })

  test('fails without a command if the input is 1 before', async () => {
    const bench = await ready()
    bench.board.stick(0, true)
    await bench.world.advance(100)
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult).toEqual({
      outcome: 'failed',
      commanded: false,
      detail: 'input_stuck: input 0 is 1 before anything was commanded',
    })
    expect(pulse(bench, 1)).toEqual([])
  })

  test('waits for an input that is 1 before', async () => {
    const bench = await ready()
    bench.board.stick(0, true)
    await bench.world.advance(100)
    const commandResult = bench.release()
    await bench.world.advance(600)
    expect(pulse(bench, 1)).toEqual([])
    bench.board.stick(0, null)
    expect((await bench.world.settle(commandResult)).outcome).toBe('confirmed')
  })

  test('confirms an acknowledged write without a confirm input', async () => {
    const bench = await ready({ confirmInput: undefined })
    expect(await bench.world.settle(bench.release())).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged',
    })
    await bench.world.advance(300)
    expect(pulse(bench, 1)).toEqual([true, false])
  })

  test.each([1, 2, 3, 6, 10])('fails after exception %i to the ON write', async (code) => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'exception', code, functions: [5], times: 1 })
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult.outcome).toBe('failed')
    expect(commandResult.detail).toMatch(new RegExp(`^refused: exception ${code} \\(`))
    expect(bench.board.coils[0]).toBe(false)
  })

  test.each([4, 5, 11, 8, 77])('reports unknown after exception %i and writes OFF at once', async (code) => {
    const bench = await ready({ confirmInput: undefined })
    bench.board.faults.on({ kind: 'exception', code, functions: [5], times: 1 })
    expect((await bench.world.settle(bench.release())).outcome).toBe('unknown')
    expect(pulse(bench, 1)).toEqual([false])
  })

  test.each(['mute', 'garble', 'dead'] as const)(
    '%s to the ON write: reports unknown, never repeats ON, repeats OFF',
    async (kind) => {
      const bench = await ready()
      bench.board.stick(0, false)
      bench.board.faults.on({ kind, functions: [5], times: 1 })
      expect(await bench.world.settle(bench.release())).toMatchObject({ outcome: 'unknown', commanded: true })
      await bench.world.advance(30_000)
      expect(pulse(bench, 1)).toEqual(kind === 'dead' ? [false] : [true, false])
    },
  )

  test.each(['mute', 'garble', 'dead'] as const)(
    '%s from the pulse on: reports unknown, and writes OFF when the board answers again',
    async (kind) => {
      const bench = await ready()
      bench.board.stick(0, false)
      const commandResult = bench.release()
      await bench.until(() => bench.board.coils[0] === true)
      bench.board.faults.on({ kind })
      expect(await bench.world.settle(commandResult)).toMatchObject({ outcome: 'unknown', commanded: true })
      await bench.until(() => bench.supervisor.status('door')?.state !== 'ready')
      bench.board.faults.heal()
      await bench.untilReady()
      expect(bench.board.coils[0]).toBe(false)
      expect(pulse(bench, 1).filter(Boolean)).toHaveLength(1)
    },
  )

  test('reports unknown if the input could not be read once and did not change', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    bench.board.faults.on({ kind: 'mute', functions: [2], times: 1 })
    expect(await bench.world.settle(commandResult)).toMatchObject({
      outcome: 'unknown',
      detail: 'answer_lost: input 0 could not be read',
    })
  })

  test('confirms if the answer to ON is lost but the input changes', async () => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'mute', functions: [5], times: 1 })
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    await bench.world.advance(2_000)
    expect(pulse(bench, 1)).toEqual([true, false])
  })

  test('does not switch a board on again that loses power during the pulse', async () => {
    const bench = await ready({ pulseMs: 5_000, confirmInput: undefined })
    await bench.world.settle(bench.release())
    bench.board.restart()
    await bench.world.advance(6_000)
    expect(pulse(bench, 1)).toEqual([true, false])
  })

  test('sees a movement that is shorter than the polling interval', async () => {
    const bench = await ready({ pollMs: 1_000 })
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.world.advance(700)
    bench.board.stick(0, true)
    await bench.world.advance(15)
    bench.board.stick(0, false)
    expect((await bench.world.settle(commandResult)).outcome).toBe('confirmed')
  })

  test('does not delay the command by slow polling', async () => {
    const bench = await ready({ pollMs: 1_000 })
    await bench.world.advance(300)
    const from = bench.world.clock.elapsed()
    void bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    expect(bench.world.clock.elapsed() - from).toBeLessThan(50)
  })

  test('fails without a command if unplugged before', async () => {
    const bench = await ready()
    bench.port.unplug()
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult).toMatchObject({ outcome: 'failed', commanded: false })
    expect(commandResult.detail).toMatch(/^not_ready/)
  })

  test('reports unknown if cut instead of the answer to ON, never repeats it, and writes OFF after the reconnect', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    bench.board.faults.on({ kind: 'cut-before-answer', functions: [5], times: 1 })
    const commandResult = await bench.world.settle(bench.release())
    expect(commandResult).toMatchObject({ outcome: 'unknown', commanded: true })
    await bench.untilReady()
    await bench.world.advance(5_000)
    expect(pulse(bench, 1)).toEqual([true, false])
    expect(bench.port.opened).toBe(2)
  })

  test('reports unknown if unplugged during the pulse, and writes OFF when the board is back', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.world.advance(100)
    expect(bench.board.coils[0]).toBe(true)
    bench.port.unplug()
    expect(await bench.world.settle(commandResult)).toMatchObject({ outcome: 'unknown', commanded: true })
    await bench.world.advance(60_000)
    expect(bench.board.coils[0]).toBe(true)
    bench.port.plug()
    await bench.untilReady()
    expect(bench.board.coils[0]).toBe(false)
    expect(pulse(bench, 1)).toEqual([true, false])
  })

  test('reports unknown if unplugged between pulse and confirmation', async () => {
    const bench = await ready()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    await bench.world.advance(600)
    bench.port.cut()
    expect(await bench.world.settle(commandResult)).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('keeps a confirmed outcome if unplugged afterwards', async () => {
    const bench = await ready()
    const commandResult = await bench.world.settle(bench.release())
    bench.port.cut()
    expect(commandResult.outcome).toBe('confirmed')
    await bench.untilReady()
    await bench.world.advance(1_000)
    expect(bench.board.coils[0]).toBe(false)
  })

  test('starts the second pulse after the first has ended', async () => {
    const bench = await ready()
    const both = Promise.all([bench.release(), bench.release()])
    expect((await bench.world.settle(both)).map((commandResult) => commandResult.outcome)).toEqual([
      'confirmed',
      'confirmed',
    ])
    await bench.world.advance(500)
    expect(pulse(bench, 1)).toEqual([true, false, true, false])
  })

  test('queues at most eight releases', async () => {
    const bench = await ready()
    const all = Promise.all(Array.from({ length: 12 }, () => bench.release()))
    const outcomes = (await bench.world.settle(all)).map((commandResult) => commandResult.detail.split(':')[0])
    expect(outcomes.filter((code) => code === 'queue_full').length).toBeGreaterThanOrEqual(3)
    expect(outcomes.filter((code) => code === 'input_changed').length).toBeGreaterThanOrEqual(8)
  })

  test('commands nothing if the caller aborts before', async () => {
    const bench = await ready()
    const gaveUp = new AbortController()
    bench.board.stick(0, true)
    await bench.world.advance(100)
    const commandResult = bench.supervisor.execute('door', RELEASE, gaveUp.signal)
    await bench.world.advance(300)
    gaveUp.abort(new Error('enough'))
    expect(await bench.world.settle(commandResult)).toEqual({
      outcome: 'failed',
      commanded: false,
      detail: 'cancelled',
    })
  })

  test('writes OFF at once and reports unknown if the caller aborts during the pulse', async () => {
    const bench = await ready({ pulseMs: 5_000 })
    const gaveUp = new AbortController()
    bench.board.stick(0, false)
    const commandResult = bench.supervisor.execute('door', RELEASE, gaveUp.signal)
    await bench.world.advance(300)
    gaveUp.abort(new Error('enough'))
    expect(await bench.world.settle(commandResult)).toEqual({
      outcome: 'unknown',
      commanded: true,
      detail: 'cancelled',
    })
    expect(bench.board.coils[0]).toBe(false)
  })

  test.each(['dead', 'exception'] as const)('retries OFF at once (%s)', async (kind) => {
    const bench = await ready({ confirmInput: undefined, passageInput: 1 })
    bench.board.faults.on({ kind, code: 6, functions: [5], after: 1, times: 2 })
    await bench.world.settle(bench.release())
    await bench.world.advance(1_700)
    expect(bench.board.coils[0]).toBe(false)
    expect(bench.events.filter(({ event }) => event.type === 'fault')).toEqual([])
  })

  test('reports a refused OFF as a fault and switches off later', async () => {
    const bench = await ready()
    bench.board.faults.on({ kind: 'exception', code: 6, functions: [5], after: 1, times: 3 })
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    await bench.world.advance(3_000)
    expect(bench.board.coils[0]).toBe(false)
    expect(pulse(bench, 1).filter(Boolean)).toHaveLength(1)
    expect(bench.events.some(({ event }) => event.type === 'fault' && event.detail.includes('may still be on'))).toBe(
      true,
    )
  })
})
