import { expect, it } from 'vitest'
import { QueueShares } from '../../../edge-agent/decisions/queue-shares.ts'

/** A journal with rows of 10 bytes. */
function bench() {
  const journal = { acked: 0, head: { seq: 0, hash: '' }, waiting: 0, waitingBytes: 0 }
  const set = (acked: number, head: number) => {
    const waiting = head - acked
    Object.assign(journal, { acked, head: { seq: head, hash: '' }, waiting, waitingBytes: waiting * 10 })
  }
  const shares = new QueueShares(journal)
  return {
    shares,
    acknowledge: (rows = journal.waiting) => set(journal.acked + rows, journal.head.seq),
    report(program: string, rows: number): string | undefined {
      const full = shares.whyFull(program)
      if (full === undefined) shares.count(program, () => set(journal.acked, journal.head.seq + rows))
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
