import { execFileSync } from 'node:child_process'
import { beforeAll, expect, it } from 'vitest'
import { ensureBuilt, ROOT } from '../support/built.ts'

/**
 * Continuations have different ids only while async hooks are enabled. Async hooks affect the whole process, so the
 * test uses a child process.
 */
const PROGRAM = `
  import { executionAsyncId } from 'node:async_hooks'
  import { jsx } from 'hono/jsx'
  import { renderPlainly } from './dist/host/http-server.js'
  const idsOfContinuations = async () => {
    const ids = []
    for (let i = 0; i < 3; i++) await Promise.resolve().then(() => ids.push(executionAsyncId()))
    return [...new Set(ids)]
  }
  if (process.argv[1] === 'plainly') renderPlainly()
  const before = await idsOfContinuations()
  const page = String(jsx('html', {}, jsx('head', {}, jsx('title', {}, 'a')), jsx('body', {}, 'b')))
  console.log(JSON.stringify({ page, before, after: await idsOfContinuations(), builtin: typeof process.getBuiltinModule('node:fs') }))
`
const run = (how: string) =>
  JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM, how], { cwd: ROOT, encoding: 'utf8' }),
  ) as { page: string; before: number[]; after: number[]; builtin: string }

beforeAll(ensureBuilt)

it('rendering a page does not enable async hooks', () => {
  const { page, before, after, builtin } = run('plainly')
  expect(page).toBe('<html><head><title>a</title></head><body>b</body></html>')
  expect(before).toHaveLength(1)
  expect(after).toEqual(before)
  expect(builtin).toBe('object')
})
