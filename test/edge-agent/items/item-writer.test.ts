import { expect, it } from 'vitest'
import { ItemWriter } from '../../../edge-agent/items/item-writer.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

it('keeps the other names of rows in memory until they are on the disk, and no longer', async () => {
  const world = virtualPlatform()
  const onDisk = new Map<string, readonly string[]>()
  const asked: string[] = []
  const writer = new ItemWriter({
    disk: {
      write: (rows) => rows.forEach(({ name, others = [] }) => onDisk.set(name, others)),
      clear: () => onDisk.clear(),
      close: () => undefined,
      othersOf: (key) => {
        asked.push(key)
        return [...(onDisk.get(key) ?? [])]
      },
    },
    timers: world.timers,
    log: { info: () => undefined, warn: () => undefined, error: (fields) => expect(fields).toBeUndefined() },
    labels: { all: [] },
    progress: () => ({ epoch: 0, ver: 1_000, base: 0, confirmedMs: 0 }),
  })
  const row = (n: number, others: readonly string[]) => ({ name: `E${n}`, info: 1, label: 0, others })
  for (let n = 0; n < 1_000; n++) writer.add(n + 1, [row(n, [`U${n}`])])
  writer.add(1_001, [row(0, ['U-new'])])
  writer.schedule()
  await world.advance(60)
  expect([writer.othersOf('E0'), writer.othersOf('E1'), writer.othersOf('E999')]).toEqual([['U-new'], ['U1'], ['U999']])
  expect(asked).toEqual(['E1'])
  await world.advance(1_000)
  expect(writer.othersOf('E0')).toEqual(['U-new'])
  expect(asked).toEqual(['E1', 'E0'])
})
