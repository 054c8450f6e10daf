import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { EXTENDED } from '../support/extended.ts'
import { jumpingPlatform } from './outage/jumping-platform.ts'
import { auditSales } from './outage/till-sales.ts'
import { virtualPlatform } from './simulation/virtual/virtual-platform.ts'

it('names sales that are lost, doubled or wrong', () => {
  const sold = new Map([
    ['1', 100],
    ['2', 200],
    ['3', 300],
  ])
  const recorded = [...sold].map(([saleId, totalCent]) => ({ saleId, totalCent }))
  expect(auditSales(sold, recorded)).toEqual({ lost: 0, doubled: 0, wrong: 0 })
  expect(auditSales(sold, recorded.slice(1))).toEqual({ lost: 1, doubled: 0, wrong: 0 })
  expect(auditSales(sold, [...recorded, { saleId: '2', totalCent: 200 }])).toEqual({ lost: 0, doubled: 1, wrong: 0 })
  const others = [{ saleId: '1', totalCent: 99 }, ...recorded.slice(1), { saleId: '4', totalCent: 1 }]
  expect(auditSales(sold, others)).toEqual({ lost: 0, doubled: 0, wrong: 2 })
})

it('jumps over the time of its timers, in their order, and keeps the others', async () => {
  const base = virtualPlatform()
  const platform = jumpingPlatform(1_000, base)
  const done: string[] = []
  const after = (name: string, ms: number) => platform.timers.after(ms, () => done.push(name))
  after('late', 5_000)
  after('second', 2_000)
  after('first', 1_000)
  after('cancelled', 500)()
  const wallMs = platform.clock.wall()
  platform.jump(3_000)
  expect(done).toEqual(['first', 'second'])
  expect(platform.clock.wall() - wallMs).toBe(3_000)
  expect(platform.aheadMs).toBe(4_000)
  await base.advance(1_999)
  expect(done).toHaveLength(2)
  await base.advance(1)
  expect(done).toEqual(['first', 'second', 'late'])
})

it('brings each sale of an outage to the cloud once, although the agent is killed', EXTENDED, async () => {
  await ensureBuilt()
  const folder = mkdtempSync(join(tmpdir(), 'untag-outage-test-'))
  const args = ['--sales', '200', '--kills', '2', '--folder', folder]
  const { error, stdout, stderr } = await new Promise<{ error: Error | null; stdout: string; stderr: string }>((done) =>
    execFile(process.execPath, ['dist/test/verification/till-outage.js', ...args], { cwd: ROOT }, (...[e, out, err]) =>
      done({ error: e, stdout: out, stderr: err }),
    ),
  )
  expect(error, stderr).toBeNull()
  expect(JSON.parse(stdout)).toMatchObject({ acknowledged: 200, lost: 0, doubled: 0, wrong: 0, unpaidTags: 0 })
  expect(readdirSync(folder)).toEqual([])
  rmSync(folder, { recursive: true })
})
