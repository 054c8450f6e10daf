import { executionAsyncId } from 'node:async_hooks'
import { jsx } from 'hono/jsx'
import { expect, it } from 'vitest'
import { renderPlainly } from '../../bin/plain-pages.ts'

/** Only where the bookkeeping of asynchronous work is switched on has a continuation an id of its own. */
async function idsOfContinuations(): Promise<number[]> {
  const ids: number[] = []
  for (let i = 0; i < 3; i++) await Promise.resolve().then(() => ids.push(executionAsyncId()))
  return ids
}

it('rendering a page leaves the bookkeeping of asynchronous work off', async () => {
  renderPlainly()
  const before = new Set(await idsOfContinuations())
  expect(String(jsx('html', {}, jsx('head', {}, jsx('title', {}, 'a')), jsx('body', {}, 'b')))).toBe('<html><head><title>a</title></head><body>b</body></html>')
  expect(new Set(await idsOfContinuations())).toEqual(before)
  expect(process.getBuiltinModule('node:fs')).toBeDefined()
})
