import { describe, expect, it } from 'vitest'
import {
  historyOf,
  OTHERS,
  type MoveByOthers,
  type ReturnOfPiece,
  type SaleOfPiece,
} from '../../../../cloud/sales/tills/piece-history.ts'

const sale = (key: string, seconds: number, agentId = 'A', isAgain = false): SaleOfPiece => ({
  key,
  atMs: seconds * 1_000,
  agentId,
  isAgain,
})
const back = (key: string, seconds: number, agentId = 'B', saleKey?: string): ReturnOfPiece => ({
  key,
  atMs: seconds * 1_000,
  agentId,
  saleKey,
})
const told = (sales: SaleOfPiece[], returns: ReturnOfPiece[], others?: MoveByOthers) => {
  const { owner, returns: found } = historyOf(sales, returns, { others })
  return [owner, Object.fromEntries(found)]
}

describe('the history of a piece', () => {
  it('gives each return to the sale before it', () => {
    const sales = [sale('s2', 200), sale('s1', 0)]
    expect(told(sales, [back('r1', 100)])).toEqual(['s2', { s1: 'r1' }])
    expect(told(sales, [back('r2', 300), back('r1', 100)])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
  })

  it('knows of the return before a sale that came back by its number', () => {
    const sales = [sale('s1', 0), sale('s2', 200, 'A', true)]
    const named = back('r2', 300, 'A', 's2')
    expect(told(sales, [named])).toEqual([undefined, { s1: undefined, s2: 'r2' }])
    expect(told(sales, [named, back('r1', 100)])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
  })

  it('leaves a piece that was sold twice with its first sale', () => {
    expect(told([sale('s1', 0), sale('s2', 200)], [])).toEqual(['s1', {}])
    expect(told([sale('s1', 0), sale('s2', 200)], [back('r', 300)])).toEqual([undefined, { s1: 'r' }])
  })

  it('waits with a return that nothing was sold before', () => {
    expect(told([], [back('r', 100)])).toEqual([undefined, {}])
    expect(told([sale('s', 200)], [back('r', 100)])).toEqual(['s', {}])
    expect(told([sale('s', 0)], [back('r1', 100), back('r2', 110)])).toEqual([undefined, { s: 'r1' }])
  })

  it('takes a return as later if the clocks of two agents leave that open', () => {
    expect(told([sale('s', 50)], [back('r', 0)])).toEqual([undefined, { s: 'r' }])
    expect(told([sale('s', 61)], [back('r', 0)])).toEqual(['s', {}])
    // One agent has one clock.
    expect(told([sale('s', 50)], [back('r', 0, 'A')])).toEqual(['s', {}])
  })

  it('follows what is sure beside what is not', () => {
    const sales = [sale('s1', 0), sale('s2', 60, 'A', true)]
    // The second return is 59 s behind, and before the first one by the clocks.
    expect(told(sales, [back('r1', 40, 'A'), back('r2', 10)])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
    // Staff counted the piece after the return.
    const counted = { atMs: 30_000, owner: undefined }
    expect(told([sale('s1', 0), sale('s2', 60)], [{ key: 'r', atMs: 20_000 }], counted)[0]).toBe('s2')
  })

  it('ends a sale whose return the next seller knew, and books that return when it arrives', () => {
    const sales = [sale('s1', 0), sale('s2', 100, 'A', true)]
    expect(told(sales, [])).toEqual(['s2', { s1: undefined }])
    expect(told(sales, [back('r1', 130)])).toEqual(['s2', { s1: 'r1' }])
    // A return at the seller itself, or much later, is about its own sale.
    expect(told(sales, [back('r2', 130, 'A')])).toEqual([undefined, { s1: undefined, s2: 'r2' }])
    expect(told(sales, [back('r2', 200)])).toEqual([undefined, { s1: undefined, s2: 'r2' }])
    expect(told(sales, [back('r2', 200), back('r1', 50)])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
  })

  it('follows a return that names its sale', () => {
    const sales = [sale('s1', 0), sale('s2', 100)]
    // However it is told that goods of a sale came back, the piece that belongs to it came back.
    const named = { ...back('r', 300, 'B', 's1'), namesTag: true }
    for (const each of [back('r', 300, 'B', 's1'), named, back('r', 300)])
      expect(told(sales, [each])).toEqual([undefined, { s1: 'r' }])
    expect(told(sales, [back('r', 300, 'B', 'another')])).toEqual(['s1', {}])
    // The second sale never had it.
    expect(told(sales, [back('r', 300, 'B', 's2')])).toEqual(['s1', { s2: 'r' }])
    expect(told(sales, [{ ...named, saleKey: 's2' }])).toEqual([undefined, { s1: undefined, s2: 'r' }])
    // It is later than its sale, whatever the clocks tell.
    expect(told([sale('s1', 400)], [named])).toEqual([undefined, { s1: 'r' }])
    expect(told([sale('s1', 0), sale('s2', 400)], [named])).toEqual(['s2', { s1: 'r' }])
  })

  it('ends with what others did with the piece', () => {
    const counted = { atMs: 100_000, owner: undefined }
    expect(told([sale('s', 0)], [], counted)).toEqual([undefined, { s: undefined }])
    expect(told([sale('s', 101)], [], counted)).toEqual(['s', {}])
    const sold = { atMs: 100_000, owner: OTHERS }
    expect(told([sale('s', 200)], [], sold)).toEqual([OTHERS, {}])
    expect(told([sale('s', 200, 'A', true)], [], sold)).toEqual(['s', {}])
    expect(told([], [back('r', 200)], sold)).toEqual([undefined, {}])
    expect(historyOf([], [back('r', 200)], { others: sold }).isBack).toBe(true)
    expect(historyOf([], [back('r', 0)], { others: sold }).isBack).toBe(false)
    // Staff ended a hold: the goods belong to their sale again.
    const paid = { atMs: 100_000, owner: 's' }
    expect(told([sale('s', 0)], [], paid)).toEqual(['s', {}])
    expect(told([sale('s', 0)], [back('r', 200)], paid)).toEqual([undefined, { s: 'r' }])
    expect(told([sale('s', 0)], [back('r', 200, 'B', 's')], paid)).toEqual([undefined, { s: 'r' }])
    expect(told([sale('s', 0)], [back('r', 50, 'B', 's')], paid)).toEqual(['s', { s: 'r' }])
  })

  it('takes the return that names the former sale as the one that the next seller knew', () => {
    const sales = [sale('s1', 0), sale('s2', 100, 'B', true)]
    const byNumber = back('r1', 70, 'B', 's1')
    expect(told(sales, [byNumber, back('r2', 130)])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
    expect(told(sales, [byNumber, back('r2', 130, 'C')])).toEqual([undefined, { s1: 'r1', s2: 'r2' }])
    // The seller of the second sale knew it, although the clocks leave the order open.
    const withTag = { ...back('r1', 90, 'A', 's1'), namesTag: true }
    expect(told([sale('s0', -900), ...sales], [back('r0', -500), withTag])).toEqual(['s2', { s0: 'r0', s1: 'r1' }])
    // Much later, the tag tells that it came back once more.
    expect(told(sales, [{ ...withTag, atMs: 300_000 }])).toEqual([undefined, { s1: 'r1', s2: undefined }])
  })

  it('gives the second of two returns to the second of two sales that named the piece', () => {
    expect(told([sale('s1', 0), sale('s2', 100)], [back('r1', 300), back('r2', 400)])).toEqual([
      undefined,
      { s1: 'r1', s2: 'r2' },
    ])
  })

  it('takes a sale that became void for a sign that the piece had come back', () => {
    const voided = [sale('v', 20, 'B')]
    const { owner } = historyOf([sale('s0', -900), sale('s2', 40)], [back('r', 10)], { voided })
    expect(owner).toBe('s2')
    // The next seller knew of the void. The return afterwards is about its own sale.
    const after = historyOf([sale('s2', 40, 'A', true)], [back('r', 60)], { voided })
    expect([after.owner, [...after.returns]]).toEqual([undefined, [['s2', 'r']]])
  })
})
