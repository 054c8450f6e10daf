import { describe, expect, it } from 'vitest'
import { realPlatform } from '../../../host/platform.ts'
import type { CloudAnswer } from '../../../edge-agent/link/wire/http-client.ts'
import type { Outbox } from '../../../edge-agent/link/reports/outbox.ts'
import { sender } from '../../../edge-agent/link/reports/sender.ts'
import { BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import { waitFor } from '../../support/wait-for.ts'

/**
 * Opens a sender for a journal of `head` rows. A batch is the text `first-last`; an acknowledgement is the last number.
 */
function open(head: number) {
  const timers = new Set<{ ms: number; task: () => void }>()
  const platform = {
    ...realPlatform(),
    timers: {
      after(ms: number, task: () => void) {
        const timer = { ms, task }
        timers.add(timer)
        return () => void timers.delete(timer)
      },
    },
  }
  /** Runs all timers now. */
  const ring = () => {
    for (const timer of timers) {
      timers.delete(timer)
      timer.task()
    }
  }
  const sent: string[] = []
  const reported: string[] = []
  const rows = { head, acked: 0, written: 0 }
  const state = { hasLine: true, lost: 0 }
  const outbox: Pick<Outbox, keyof Outbox> = {
    get waiting() {
      return rows.head - rows.acked
    },
    get head() {
      return rows.head
    },
    get acked() {
      return rows.acked
    },
    next(from) {
      const to = Math.min(rows.head, from + BATCH_LIMIT)
      return to === from ? undefined : { batch: `${from + 1}-${to}`, to }
    },
    rewind(ack, from) {
      if (Number(ack) >= from) return false
      rows.acked = Number(ack)
      return true
    },
    acknowledge(ack) {
      rows.acked = Math.max(rows.acked, Number(ack))
      return true
    },
  }
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const sending = sender({
    platform,
    outbox,
    log,
    isOnline: () => true,
    nowMs: () => 0,
    publish: (batch) => state.hasLine && sent.push(batch) > 0,
    onPublished: (wasAcknowledged) => void (state.lost += wasAcknowledged ? 0 : 1),
    report(batch): Promise<CloudAnswer> {
      reported.push(batch)
      return Promise.resolve({ kind: 'answered', body: { ack: batch.split('-')[1] } })
    },
    onChange: () => undefined,
    onRefused: () => undefined,
  })
  return { timers, ring, sent, reported, rows, state, sending }
}

describe('rows in the outbox', () => {
  it('are sent in full batches, three at once, the next after an acknowledgement', () => {
    const { sent, rows, sending } = open(530)
    sending.kick()
    expect(sent).toEqual(['1-100', '101-200', '201-300'])
    sending.onAck('100')
    expect(sent).toHaveLength(4)
    // One acknowledgement covers two batches.
    sending.onAck('300')
    expect(sent.slice(3)).toEqual(['301-400', '401-500'])
    sending.onAck('500')
    expect(sent.at(-1)).toBe('501-530')
    rows.head = 540
    sending.kick()
    expect(sent.at(-1)).toBe('501-530')
    sending.onAck('530')
    expect(sent.at(-1)).toBe('531-540')
  })

  it('are sent again at once if the cloud stored a part of a batch', () => {
    const { sent, sending } = open(250)
    sending.kick()
    expect(sent).toEqual(['1-100', '101-200'])
    sending.onAck('30')
    expect(sent.slice(2)).toEqual(['31-130', '131-230'])
  })

  it('are sent again over HTTP from the first unacknowledged row, although later ones are under way', async () => {
    const { timers, ring, sent, reported, rows, state, sending } = open(250)
    sending.kick()
    expect(sent).toEqual(['1-100', '101-200'])
    sending.onAck('100')
    state.hasLine = false
    expect([...timers].map(({ ms }) => ms)).toEqual([5_000])
    expect(reported).toEqual([])
    ring()
    expect(state.lost).toBe(1)
    await waitFor(() => expect(rows.acked).toBe(250))
    expect(reported).toEqual(['101-200', '201-250'])
    expect(timers.size).toBe(0)
  })
})
