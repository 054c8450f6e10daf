import { describe, expect, it } from 'vitest'
import { streamResponse } from '../../../cloud/http/stream-response.ts'

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
  const { body } = streamResponse({ contentType: 'text/plain', chunks: chunks() }, {}, (error) => failures.push(error))
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    reader,
    failures,
    give: async (end: { part?: string; error?: Error }) => (await settled(), go(end), settled()),
    isEnded: () => isEnded,
  }
}

describe('a streamed response', () => {
  it('contains all parts to the end', async () => {
    const { reader, give, failures } = slowly()
    const first = reader.read()
    await give({ part: 'a' })
    expect(new TextDecoder().decode((await first).value)).toBe('a')
    const last = reader.read()
    await give({})
    expect([(await last).done, failures]).toEqual([true, []])
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

  it('breaks off and logs the reason when a part fails', async () => {
    const { reader, give, failures } = slowly()
    const fault = new Error('no such table')
    const first = expect(reader.read()).rejects.toBe(fault)
    await give({ error: fault })
    await first
    expect(failures).toEqual([fault])
  })
})
