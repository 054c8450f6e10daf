import { expect, it } from 'vitest'
import { keyRunner } from '../../bin/commands/demonstration.ts'

it('says which keys wait, takes only a few in advance, and ends at once', async () => {
  const done: string[] = []
  const told: string[] = []
  let finish = (): void => undefined
  const first = new Promise<void>((resolve) => (finish = resolve))
  const run = keyRunner(
    {
      u: async () => {
        await first
        done.push('u')
      },
      o: () => void done.push('o'),
      q: () => void done.push('q'),
    },
    (line) => told.push(line),
    2,
  )
  const pressed = ['u', 'o', 'x', 'o', 'o', 'q'].map((key) => run(key))
  expect(done).toEqual(['q'])
  expect(told).toEqual([
    expect.stringContaining('[o] follows after the key before'),
    expect.stringContaining('[o] follows after the 2 keys before'),
    expect.stringContaining('Not taken: [o]'),
  ])
  finish()
  await Promise.all(pressed)
  expect(done).toEqual(['q', 'u', 'o', 'o'])
  // There is room again.
  await run('o')
  expect(done).toEqual(['q', 'u', 'o', 'o', 'o'])
  expect(told).toHaveLength(3)
})
