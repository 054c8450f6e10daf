import { describe, expect, test } from 'vitest'
import { EPC, gateBench } from './gate-bench.ts'

const HOUR = 3_600_000

describe('time of a read', () => {
  test.each([
    ['right', { clockAheadMs: 0 }],
    ['three hours behind', { clockAheadMs: -3 * HOUR }],
    ['a day ahead', { clockAheadMs: 24 * HOUR }],
    ['not there (stamps since its start)', { hasClock: false }],
  ])('gives buffered reads their true time; the reader’s clock is %s', async (_, reader) => {
    const bench = gateBench({ reader, gate: { passageInput: 3 } })
    await bench.untilReady()
    await bench.world.advance(1_234)
    const seen: number[] = []
    bench.port.unplug()
    for (let i = 0; i < 100; i++) {
      await bench.world.advance(3_000)
      bench.reader.see(EPC, { antenna: 2 })
      seen.push(bench.world.clock.elapsed())
    }
    bench.reader.setInput(3, true)
    await bench.world.advance(5_000)
    bench.port.plug()
    await bench.untilReady()
    await bench.world.advance(100)
    expect(bench.reads().map(({ seenAtMs }) => Math.round(seenAtMs))).toEqual(seen)
    // An old passage must not count as a passage now.
    expect(bench.events.some((event) => event.type === 'passage' || event.type === 'input')).toBe(false)
    bench.reader.see(EPC)
    bench.reader.setInput(3, false)
    bench.reader.setInput(3, true)
    await bench.world.advance(1)
    expect(bench.reads().at(-1)?.seenAtMs).toBe(bench.world.clock.elapsed() - 1)
    expect(bench.events.slice(-3)).toEqual([
      { type: 'input', input: 3, on: false },
      { type: 'input', input: 3, on: true },
      { type: 'passage' },
    ])
  })

  test('corrects a clock that is set while the reader runs within seconds, and never reports the future', async () => {
    const bench = gateBench()
    await bench.untilReady()
    for (const aheadMs of [2 * HOUR, -5 * HOUR, -5 * HOUR - 3_000, 0]) {
      bench.reader.setClock(aheadMs)
      for (let i = 0; i < 40; i++) {
        bench.reader.see(EPC)
        await bench.world.advance(500)
        expect(bench.reads().at(-1)!.seenAtMs).toBeLessThanOrEqual(bench.world.clock.elapsed())
      }
      bench.reader.see(EPC)
      await bench.world.advance(0)
      expect(bench.world.clock.elapsed() - bench.reads().at(-1)!.seenAtMs, `${aheadMs}`).toBeLessThan(50)
    }
    expect(bench.port.opened).toBe(1)
  })

  test('does not age reads of a clock that drifts four seconds a day', async () => {
    const bench = gateBench()
    await bench.untilReady()
    for (let hour = 0; hour < 24; hour++) {
      bench.reader.setClock((-4_000 / 24) * hour)
      for (let i = 0; i < 60; i++) {
        bench.reader.see(EPC)
        await bench.world.advance(HOUR / 60)
      }
      bench.reader.see(EPC)
      await bench.world.advance(0)
      expect(bench.world.clock.elapsed() - bench.reads().at(-1)!.seenAtMs).toBeLessThan(400)
    }
  })

  test('reports a full buffer of the reader as a fault, once', async () => {
    const bench = gateBench({ reader: { maxBuffered: 50 } })
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(100)
    for (let i = 0; i < 80; i++) bench.reader.see(EPC)
    bench.port.plug()
    await bench.untilReady()
    await bench.world.advance(10)
    expect(bench.faults()).toEqual(['the reader’s report buffer ran over: tag reads were lost'])
    expect(bench.reads()).toHaveLength(50)
  })
})

describe('other reports of the reader', () => {
  test('reports inputs, passages, exceptions and antennas', async () => {
    const bench = gateBench({ gate: { passageInput: 1, inputs: [2] } })
    await bench.untilReady()
    bench.reader.setInput(1, true)
    bench.reader.setInput(2, true)
    bench.reader.setInput(3, true)
    bench.reader.setInput(1, false)
    bench.reader.setAntenna(2, false)
    bench.reader.setAntenna(2, true)
    bench.reader.exception('PA temperature')
    await bench.world.advance(10)
    expect(bench.events).toEqual([
      { type: 'input', input: 1, on: true },
      { type: 'passage' },
      { type: 'input', input: 2, on: true },
      { type: 'input', input: 1, on: false },
      expect.objectContaining({ type: 'finding' }),
      { type: 'fault', detail: 'antenna 2 is not connected; check its cable' },
      { type: 'finding_over', code: 'reader_antenna' },
      { type: 'fault', detail: 'antenna 2 is connected again' },
      { type: 'fault', detail: 'the reader reports an exception: PA temperature' },
    ])
  })

  const UNPLUGGED = {
    state: 'degraded',
    findings: [{ code: 'reader_antenna', detail: 'antenna 2 (outside): not connected; check the cable' }],
  }

  test('is degraded while the cable of an antenna is pulled', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.setAntenna(2, false)
    await bench.world.advance(10)
    expect(bench.state()).toMatchObject(UNPLUGGED)
    bench.reader.setAntenna(2, true)
    await bench.world.advance(10)
    expect(bench.state().state).toBe('ready')
  })

  test('is degraded at a reader whose antenna was never connected', async () => {
    const bench = gateBench()
    bench.reader.setAntenna(2, false)
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state()).toMatchObject(UNPLUGGED)
    expect(bench.states.map(({ state }) => state)).not.toContain('ready')
  })

  test('starts a reader again that another program has stopped', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.stopReading()
    await bench.world.advance(6_000)
    expect(bench.faults()).toEqual(['the reader had stopped reading; the agent starts it again'])
    await bench.untilReady()
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(1)
  })

  test('is never ready at a reader that does not start to read', async () => {
    const bench = gateBench({ reader: { neverStarts: true } })
    await bench.world.advance(120_000)
    expect(bench.states.map(({ state }) => state)).not.toContain('ready')
    expect(bench.states.map(({ detail }) => detail)).toContain(
      'the reader accepts the read program but does not start it; check region, antennas and other programs on its web page',
    )
  })

  test('transmits with a beam only while a person is there', async () => {
    const bench = gateBench({ gate: { readOnBeam: { gpi: 2, seconds: 4 } } })
    await bench.untilReady()
    bench.reader.see(EPC)
    expect(bench.reader.isReading).toBe(false)
    bench.reader.setInput(2, true)
    bench.reader.see(EPC)
    await bench.world.advance(4_100)
    expect([bench.reader.isReading, bench.reads().length]).toEqual([false, 1])
  })

  test('delivers 1,500 reads a second for ten seconds, in order, in events of at most 1,000', async () => {
    const bench = gateBench()
    await bench.untilReady()
    const epc = (n: number) => n.toString(16).toUpperCase().padStart(24, '0')
    for (let n = 0; n < 15_000; n++) {
      bench.reader.see(epc(n))
      if (n % 15 === 14) await bench.world.advance(10)
    }
    await bench.world.advance(10)
    expect(bench.reads().map(({ tag }) => ('epc' in tag ? tag.epc : ''))).toEqual(
      Array.from({ length: 15_000 }, (_, n) => epc(n)),
    )
    expect(
      Math.max(...bench.events.map((event) => (event.type === 'tags' ? event.reads.length : 0))),
    ).toBeLessThanOrEqual(1_000)
  })
})

test('a reader that needs 0.8 s for each answer becomes ready, and stays ready', async () => {
  const bench = gateBench({ reader: { answerDelayMs: 800 } })
  await bench.untilReady()
  await bench.world.advance(60_000)
  expect(bench.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
})

describe('Gen2 sessions', () => {
  /** Reads of a tag that is inside, and outside half a second later, by a reader that queries target A only. */
  async function walkWith(gate: Record<string, unknown>) {
    const bench = gateBench({ gate, reader: { target: 'A' } })
    await bench.untilReady()
    for (let ms = 0; ms < 1_000; ms += 50) {
      bench.reader.see(EPC, { antenna: ms < 500 ? 1 : 2 })
      await bench.world.advance(50)
    }
    return { antennas: new Set(bench.reads().map(({ antenna }) => antenna)), findings: bench.state().findings }
  }

  test('a reader with antennas on both sides uses session 0, so that no read outside is missing', async () => {
    expect(await walkWith({})).toEqual({ antennas: new Set([1, 2]), findings: [] })
  })

  test.each([
    [1, 'for up to 5 s'],
    [2, 'while it stays in the field'],
    [3, 'while it stays in the field'],
  ])('session %i must be set, hides the read outside, and is warned of', async (session, silence) => {
    const { antennas, findings } = await walkWith({ session })
    expect(antennas).toEqual(new Set([1]))
    expect(findings).toMatchObject([
      { code: 'reader_session', isWarning: true, detail: expect.stringContaining(silence) },
    ])
    expect(findings[0]?.detail).toContain('"session": 0')
  })

  test.each([
    ['without antennas', { antennas: undefined }],
    ['with antennas on one side', { antennas: { inside: [1, 2] } }],
  ])('a reader %s uses session 1, which needs no warning', async (_, gate) => {
    const { antennas, findings } = await walkWith(gate)
    expect([antennas.size, findings]).toEqual([1, []])
  })
})
