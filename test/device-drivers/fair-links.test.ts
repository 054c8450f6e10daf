import { expect, it } from 'vitest'
import { fairLinks } from '../../device-drivers/transports/fair-links.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'

const SETTINGS = { tcp: '192.0.2.1:5084' }

it('gives other work of the process as many turns as the bytes of a device cost ms', async () => {
  let nowMs = 0
  const { near, far } = memoryPair()
  const open = fairLinks(() => Promise.resolve(near), { elapsed: () => nowMs })
  const { bytes } = await open(SETTINGS, AbortSignal.timeout(5_000))
  let turns = 0
  let isOver = false
  const count = () => void (turns++, isOver || setImmediate(count))
  setImmediate(count)
  await far.write(new Uint8Array(1_000).fill(1), AbortSignal.timeout(5_000))
  await far.write(new Uint8Array(20_480).fill(2), AbortSignal.timeout(5_000))
  await far.close()
  let size = 0
  for await (const slice of bytes) {
    expect(slice.length).toBeLessThanOrEqual(2_048)
    size += slice.length
    nowMs += 20
  }
  isOver = true
  expect(size).toBe(21_480)
  expect(turns).toBeGreaterThanOrEqual(9 * 20)
})
