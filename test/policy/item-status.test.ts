import { describe, expect, it } from 'vitest'
import { FIRST_ITEM_STATUSES, GATE_BEHAVIOUR, mayItemMove, nextItemStatuses } from '../../policy/item-status.ts'
import { ITEM_STATUSES } from '../../policy/vocabulary.ts'

/** The moves of ADR items, written independently of the code. Staff moves to and from `exception_hold` are separate. */
const LISTED = [
  'sellable>paid',
  'sellable>reserved_bopis',
  'sellable>transfer_in_transit',
  'reserved_bopis>picked_up',
  'reserved_bopis>sellable',
  'paid>returned',
  'picked_up>returned',
  'returned>sellable',
  'paid>cancelled',
  'cancelled>sellable',
  'transfer_in_transit>sellable',
]

describe('item status', () => {
  it('allows exactly the listed moves', () => {
    const moves = ITEM_STATUSES.flatMap((from) =>
      ITEM_STATUSES.filter((to) => mayItemMove(from, to)).map((to) => `${from}>${to}`),
    )
    const withoutHold = moves.filter((move) => !move.includes('exception_hold'))
    expect(withoutHold.sort()).toEqual([...LISTED].sort())
  })

  it('lets staff put any item on hold and end the hold with any status', () => {
    for (const status of ITEM_STATUSES) {
      if (status === 'exception_hold') continue
      expect(mayItemMove(status, 'exception_hold')).toBe(true)
      expect(mayItemMove('exception_hold', status)).toBe(true)
    }
    expect(mayItemMove('exception_hold', 'exception_hold')).toBe(false)
  })

  it('never lists the status itself as the next one', () => {
    for (const status of ITEM_STATUSES) expect(nextItemStatuses(status)).not.toContain(status)
  })

  it('cannot begin as paid, so that no registration lets an item pass the gate', () => {
    for (const status of FIRST_ITEM_STATUSES) expect(['paid', 'picked_up']).not.toContain(status)
    expect(ITEM_STATUSES.filter((s) => GATE_BEHAVIOUR[s] === 'pass')).toEqual([
      'paid',
      'picked_up',
      'transfer_in_transit',
    ])
  })
})
