import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventBuffer, eventReader } from '../../../clients/typescript/agent-events.ts'

describe('the reader of server-sent events', () => {
  it.each([
    ['one event', 'event: status\ndata: {"a":1}\n\n', ['{"a":1}']],
    ['lines of one event', 'data: a\ndata:b\ndata\n\n', ['a\nb\n']],
    ['comments and unknown fields', ': hello\nid: 4\nretry: 10\ndata: x\n\n', ['x']],
    ['other line ends', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', ['a', 'b', 'c']],
    ['an event without data', 'event: x\n\n', []],
    ['an event that is not complete', 'data: a\n', []],
  ])('reads %s', (_, text, events) => {
    expect(eventReader().read(text)).toEqual(events)
  })

  it('reads the same events for any split of the text', () => {
    const line = fc.constantFrom('data: a', 'data: ä', 'data', ': x', 'event: e', '', '')
    const text = fc
      .array(fc.tuple(line, fc.constantFrom('\n', '\r\n')), { maxLength: 12 })
      .map((lines) => lines.flat().join(''))
    fc.assert(
      fc.property(text, fc.array(fc.nat(60), { maxLength: 8 }), (whole, cuts) => {
        const reader = eventReader()
        const places = [...new Set([0, ...cuts.filter((at) => at < whole.length), whole.length])].toSorted(
          (a, b) => a - b,
        )
        const pieces = places.slice(1).map((end, i) => whole.slice(places[i], end))
        expect(pieces.flatMap((piece) => reader.read(piece))).toEqual(eventReader().read(whole))
      }),
      { numRuns: 300 },
    )
  })

  it('rejects an event that is larger than 1 MiB', () => {
    const reader = eventReader()
    expect(() => {
      for (let sent = 0; sent < 20; sent++) reader.read(`data: ${'x'.repeat(100_000)}\n`)
    }).toThrow('too large')
    expect(() => eventReader().read('x'.repeat(1_100_000))).toThrow('too large')
  })
})

describe('the buffer of events', () => {
  it('drops and counts the oldest events when it is full', async () => {
    const buffer = eventBuffer<number>(3)
    for (let n = 0; n < 5; n++) buffer.push(n)
    buffer.end()
    const read: unknown[] = []
    for await (const event of buffer.read()) read.push(event)
    expect(read).toEqual([{ type: 'missed', count: 2 }, 2, 3, 4])
  })

  it('throws its error after the buffered events', async () => {
    const buffer = eventBuffer<number>(3)
    buffer.push(1)
    buffer.end(new Error('gone'))
    const events = buffer.read()
    expect(await events.next()).toEqual({ done: false, value: 1 })
    await expect(events.next()).rejects.toThrow('gone')
  })
})
