import { expect, it } from 'vitest'
import { Repeater } from '../../../cloud/service/jobs.ts'
import type { Services } from '../../../cloud/platform/operations/operation.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

it('runs a job again soon while it leaves due work, then at its interval', async () => {
  const world = virtualPlatform()
  const repeater = new Repeater({ platform: world, log: {}, authority: {} } as unknown as Services)
  const ranAt: number[] = []
  repeater.every(60_000, 'a job', () => {
    ranAt.push(world.clock.elapsed())
    return Promise.resolve(ranAt.length % 4 !== 0)
  })
  await world.advance(125_000)
  await repeater.stop()
  expect(ranAt).toEqual([60_000, 61_000, 62_000, 63_000, 123_000, 124_000, 125_000])
})
