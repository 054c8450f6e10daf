import { describe, expect, it } from 'vitest'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { streamResponse } from '../../../../cloud/service/http/api.ts'

/** A response whose parts the test releases. */
function slowly() {
  const failures: unknown[] = []
  let go: (end: { part?: string; error?: Error }) => void = () => undefined
  let isEnded = false
  async function* chunks() {
    try {
      for (;;) {
        const { part, error } = await new Promise<{ part?: string; error?: Error }>((resolve) => (go = resolve))
        if (error) throw error
        if (part === undefined) return
        yield part
      }
    } finally {
      isEnded = true
    }
  }
  const world = virtualPlatform()
  let closed = 0
  const response = { contentType: 'text/plain', chunks: chunks(), close: () => void closed++ }
  const { body } = streamResponse(response, {}, world.timers, (error) => failures.push(error))
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    reader,
    failures,
    give: async (end: { part?: string; error?: Error }) => (await settled(), go(end), settled()),
    isEnded: () => isEnded,
    closed: () => closed,
    world,
  }
}

describe('a streamed response', () => {
  it('contains all parts to the end', async () => {
    const { reader, give, failures, closed, world } = slowly()
    const first = reader.read()
    await give({ part: 'a' })
    expect(new TextDecoder().decode((await first).value)).toBe('a')
    const last = reader.read()
    await give({})
    expect([(await last).done, failures, closed(), world.pending]).toEqual([true, [], 1, 0])
  })

  it.each([{ part: 'b' }, {}])('ends without an error when its reader disconnects while %j is pending', async (end) => {
    const { reader, give, failures, isEnded } = slowly()
    const first = reader.read()
    await give({ part: 'a' })
    await first
    const left = reader.cancel()
    await give(end)
    await left
    expect([isEnded(), failures]).toEqual([true, []])
  })

  it('is cut if its reader takes a minute for a part, and produces no further part', async () => {
    const { reader, give, failures, isEnded, closed, world } = slowly()
    await give({ part: 'a' })
    await world.advance(59_999)
    expect([(await reader.read()).done, closed()]).toEqual([false, 0])
    await give({ part: 'b' })
    await world.advance(60_000)
    await give({})
    await expect(reader.read()).rejects.toThrow('the client reads too slowly')
    expect([isEnded(), failures, closed()]).toEqual([true, [], 1])
  })

  it('breaks off and logs the reason when a part fails', async () => {
    const { reader, give, failures } = slowly()
    const fault = new Error('no such table')
    const first = expect(reader.read()).rejects.toBe(fault)
    await give({ error: fault })
    await first
    expect(failures).toEqual([fault])
  })
})
