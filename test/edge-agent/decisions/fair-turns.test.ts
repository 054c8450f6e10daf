import { expect, it } from 'vitest'
import { FairTurns } from '../../../edge-agent/decisions/fair-turns.ts'

/** Timers that run when the test says so. */
function manual() {
  const due: { ms: number; run: () => void }[] = []
  let nowMs = 0
  const platform = {
    clock: { elapsed: () => nowMs, wall: () => nowMs },
    timers: {
      after(ms: number, run: () => void) {
        due.push({ ms, run })
        return () => undefined
      },
    },
  }
  const step = async (): Promise<number | undefined> => {
    const next = due.shift()
    next?.run()
    await Promise.resolve()
    return next?.ms
  }
  return { turns: new FairTurns(platform as never), step, takes: (ms: number) => void (nowMs += ms) }
}

it('gives the first turn at once, then one at a time, each device by turns', async () => {
  const { turns, step } = manual()
  const order: string[] = []
  const ask = (device: string, n: number) => void turns.next(device).then(() => order.push(`${device}${n}`))
  for (const n of [1, 2, 3]) ask('a', n)
  ask('b', 1)
  await Promise.resolve()
  expect(order).toEqual(['a1'])
  for (let n = 0; n < 8; n++) await step()
  expect(order).toEqual(['a1', 'a2', 'b1', 'a3'].toSorted((x, y) => order.indexOf(x) - order.indexOf(y)))
  expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a3'))
})

it('leaves as much time for other work as a turn took', async () => {
  const { turns, step, takes } = manual()
  void turns.next('a').then(() => takes(60))
  void turns.next('a')
  await Promise.resolve()
  expect([await step(), await step()]).toEqual([0, 60])
  void turns.next('a').then(() => takes(3_600_000))
  await step()
  await step()
  expect(await step(), 'after a sleep of the machine').toBeLessThanOrEqual(250)
})
