import { expect, it } from 'vitest'
import { QueueShares } from '../../../edge-agent/decisions/queue-shares.ts'

/** A journal with rows of 10 bytes. */
function bench() {
  const journal = { acked: 0, head: { seq: 0, hash: '' }, waiting: 0, waitingBytes: 0 }
  const set = (acked: number, head: number, more = 0) => {
    const waiting = head - acked
    Object.assign(journal, { acked, head: { seq: head, hash: '' }, waiting, waitingBytes: waiting * 10 + more })
  }
  const room = { bytes: 1e9, elapsedMs: 0 }
  const clock = { elapsed: () => room.elapsedMs }
  const shares = new QueueShares({ journal, clock, freeBytes: async () => room.bytes })
  return {
    room,
    acknowledge: (rows = journal.waiting) => set(journal.acked + rows, journal.head.seq),
    report(program: string, rows: number, bytes = rows * 10): string | undefined {
      const full = shares.whyFull(program)
      if (full === undefined)
        shares.count(program, () => set(journal.acked, journal.head.seq + rows, bytes - rows * 10))
      return full
    },
  }
}

it('lets one program fill half of what may wait, and leaves the rest to others', () => {
  const { report, acknowledge } = bench()
  expect(report('flood', 149_999)).toBe(undefined)
  expect(report('flood', 1)).toBe(undefined)
  expect(report('flood', 1)).toMatch(/half of what may wait/)
  expect(report('till', 100_000)).toBe(undefined)
  acknowledge()
  expect(report('flood', 1)).toBe(undefined)
})

it('does not count what the cloud has, although something always waits', () => {
  const { report, acknowledge } = bench()
  for (let n = 0; n < 100; n++) {
    expect(report('busy', 30_000)).toBe(undefined)
    acknowledge(n === 0 ? 20_000 : 30_000)
  }
})

it('refuses all programs when too many rows wait', () => {
  const { report } = bench()
  for (const program of ['a', 'b', 'c']) report(program, 120_000)
  expect(report('d', 1)).toMatch(/300000 rows wait/)
})

it('takes 100 MB of one program in an hour, also if the cloud has it at once', () => {
  const { report, acknowledge, room } = bench()
  expect(report('flood', 1, 100_000_000)).toBe(undefined)
  acknowledge()
  expect(report('flood', 1)).toMatch(/within an hour/)
  expect(report('till', 1)).toBe(undefined)
  room.elapsedMs += 3_600_000
  expect(report('flood', 1)).toBe(undefined)
})

it('leaves the rest of an almost full disk to releases', async () => {
  const { report, room } = bench()
  room.bytes = 200 * 1_048_576
  report('till', 1)
  await Promise.resolve()
  expect(report('till', 1)).toMatch(/almost full/)
  room.bytes = 1e9
  room.elapsedMs += 5_000
  report('till', 1)
  await Promise.resolve()
  expect(report('till', 1)).toBe(undefined)
})
