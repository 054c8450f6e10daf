import { describe, expect, it } from 'vitest'
import {
  BATCHES_OF_ACCOUNT,
  BATCHES_OF_AGENT,
  BATCHES_OF_ALL,
  waitingBatches,
} from '../../../../cloud/service/messaging/agent-messages.ts'
import { lruCache } from '../../../../cloud/platform/foundation/shared-slots.ts'

/** docs/reference/limits.md lists all lists and tables of the cloud that callers fill. */
describe('lists of the cloud', () => {
  it('accept 4 waiting batches of one agent and 500 of all agents', () => {
    const batches = waitingBatches()
    const stored = Array.from({ length: BATCHES_OF_AGENT }, () => batches.ofAgent('agt_a'))
    expect(stored.every((done) => done !== undefined)).toBe(true)
    expect(batches.ofAgent('agt_a')).toBeUndefined()
    let taken = BATCHES_OF_AGENT
    for (let n = 0; n < 1_000; n++) if (batches.ofAgent(`agt_${n}`)) taken++
    expect(taken).toBe(BATCHES_OF_ALL)
    expect(batches.ofAgent('agt_new')).toBeUndefined()
    stored[0]?.()
    expect(batches.ofAgent('agt_new')).toBeDefined()
    expect(batches.ofAgent('agt_newer')).toBeUndefined()
  })

  it('leave half of the waiting batches to other accounts', () => {
    const batches = waitingBatches()
    const own = Array.from({ length: BATCHES_OF_ALL }, () => batches.ofAccount('acc_a'))
    expect(own.filter((stored) => stored !== undefined)).toHaveLength(BATCHES_OF_ACCOUNT)
    expect(batches.ofAccount('acc_b')).toBeDefined()
    own[0]?.()
    expect([batches.ofAccount('acc_a'), batches.ofAccount('acc_a')]).toEqual([expect.any(Function), undefined])
  })

  it('keep the most recently used keys and documents', () => {
    const table = lruCache<string, number>(3)
    for (const [n, name] of ['a', 'b', 'c'].entries()) table.set(name, n)
    expect(table.get('a')).toBe(0)
    table.set('d', 3)
    expect([table.size, table.get('b'), table.get('a'), table.get('d')]).toEqual([3, undefined, 0, 3])
    table.clear()
    expect(table.size).toBe(0)
  })
})
