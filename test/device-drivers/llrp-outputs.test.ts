import { describe, expect, test } from 'vitest'
import { MESSAGES } from '../../device-drivers/llrp/protocol/messages.ts'
import type { MessageName } from '../../device-drivers/llrp/protocol/messages.ts'
import { gateBench, writesTo } from './gate-bench.ts'
import { RELEASE } from './workbench.ts'

const of = (...names: MessageName[]) => names.map((name) => MESSAGES[name].type)

describe('siren and lamps', () => {
  test('switches on, extends, and switches off by time and by command', async () => {
    const bench = gateBench({ gate: { green: { gpo: 4 } } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.siren(5))).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged',
    })
    await bench.world.advance(3_000)
    await bench.world.settle(bench.siren(5))
    await bench.world.advance(4_900)
    expect(bench.reader.gpos[1]).toBe(true)
    await bench.world.advance(200)
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.world.settle(bench.execute({ kind: 'signal', signal: 'green', seconds: 60 }))
    expect(bench.reader.gpos[4]).toBe(true)
    await bench.world.settle(bench.execute({ kind: 'signal', signal: 'green', seconds: 0 }))
    expect(bench.reader.gpos[4]).toBe(false)
    expect(await bench.world.settle(bench.execute({ kind: 'signal', signal: 'amber', seconds: 1 }))).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('not_supported: no amber is configured; add "amber": { "gpo": … }'),
    })
  })

  test('sounds after the reconnect if requested while the reader was away', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(100)
    expect(await bench.world.settle(bench.siren(120))).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('not_ready'),
    })
    bench.port.plug()
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(true)
  })

  test('reports unknown for a lost answer, reconnects and writes the desired outputs', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.faults.on({ kind: 'dead', functions: of('SET_READER_CONFIG'), times: 1 })
    expect(await bench.world.settle(bench.siren(60))).toEqual({
      outcome: 'unknown',
      commanded: true,
      detail: 'answer_lost: no answer to SET_READER_CONFIG within 3000 ms; it is written again while its time lasts',
    })
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(true)
  })

  test('repeats a lost OFF, and reports a refused one as a fault', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.settle(bench.siren(2))
    bench.reader.faults.on({ kind: 'dead', functions: of('SET_READER_CONFIG'), times: 1 })
    await bench.world.advance(2_100)
    expect(bench.reader.gpos[1]).toBe(true)
    await bench.until(() => bench.port.opened === 2)
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.world.settle(bench.siren(2))
    bench.reader.faults.on({ kind: 'exception', code: 401, functions: of('SET_READER_CONFIG'), times: 1 })
    await bench.world.advance(2_100)
    expect(bench.faults()).toEqual(['output 1 could not be switched off: device error (401), simulated'])
  })
})

describe('a barrier', () => {
  const barrier = { release: { gpo: 3, pulseMs: 500 } }

  test('opens once for each release, and closes', async () => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(RELEASE))).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged',
    })
    expect(bench.reader.gpos[3]).toBe(true)
    await bench.world.advance(600)
    expect(writesTo(bench.reader, 3)).toEqual([false, true, false])
  })

  test.each<[Parameters<ReturnType<typeof gateBench>['reader']['faults']['on']>[0], string, boolean, number]>([
    [{ kind: 'mute' }, 'unknown', true, 1],
    [{ kind: 'dead' }, 'unknown', true, 0],
    [{ kind: 'garble' }, 'unknown', true, 1],
    [{ kind: 'cut-before-answer' }, 'unknown', true, 1],
    [{ kind: 'exception', code: 101 }, 'failed', true, 0],
    [{ kind: 'cut-after-answer' }, 'confirmed', true, 1],
  ])('%j: %s', async (fault, outcome, commanded, ons) => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    bench.reader.faults.on({ ...fault, functions: of('SET_READER_CONFIG'), times: 1 })
    expect(await bench.world.settle(bench.execute(RELEASE))).toMatchObject({ outcome, commanded })
    await bench.world.advance(10_000)
    await bench.untilReady()
    expect(writesTo(bench.reader, 3).filter(Boolean)).toHaveLength(ons)
    expect(bench.reader.gpos[3]).toBe(false)
  })

  test('is not opened while the reader is away, nor without a configured output', async () => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(0)
    expect(await bench.world.settle(bench.execute(RELEASE))).toMatchObject({ outcome: 'failed', commanded: false })
    bench.port.plug()
    await bench.untilReady()
    expect(writesTo(bench.reader, 3)).not.toContain(true)
    const without = gateBench()
    await without.untilReady()
    expect(await without.world.settle(without.execute(RELEASE))).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('not_supported'),
    })
  })
})
