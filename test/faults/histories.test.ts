// @module-tag extended
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { withMutant } from '../verification/kills/kill-mutants.ts'
import { whyNoPostgres } from '../verification/kills/postgres-server.ts'
import { HISTORY_MUTANTS } from '../verification/histories/history-mutants.ts'
import { isLinearizable, type Step } from '../verification/histories/history.ts'
import { LOST_ANSWERS } from '../verification/histories/lost-answers.ts'
import { RIGHT } from '../verification/histories/models/rights.ts'
import { BALANCE, stockModel } from '../verification/histories/models/shop.ts'
import { runHistories } from '../verification/histories/run.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { IS_FULL_SIZE, itInFullSize } from '../support/full-size.ts'

const missing = whyNoPostgres()

/** A step that was answered. */
function step(from: number, to: number, operation: string, body: Step['body'], more: Partial<Step> = {}): Step {
  return { operation, body, outcome: 'done', answer: {}, reason: undefined, from, to, ...more }
}

const verify = (from: number, to: number, deviceId: string, nonce: string) =>
  step(from, to, 'verifyProtectedItem', { deviceId }, { answer: { authorized: true, replayProtectedNonce: nonce } })
const redeem = (from: number, to: number, nonce: string, redemptionId: string, more: Partial<Step> = {}) =>
  step(from, to, 'redeemProtectionAuthorization', { replayProtectedNonce: nonce, redemptionId }, more)
const LOST: Partial<Step> = { outcome: 'unknown', to: Infinity }

describe('the check of histories', () => {
  it('accepts a lease that moves to a second device, and one redemption', () => {
    const steps = [verify(1, 4, 'a', 'n1'), verify(2, 3, 'b', 'n2'), redeem(5, 6, 'n1', 'r1')]
    expect(isLinearizable(steps, RIGHT)).toBe(true)
  })

  it('finds the second redemption, and the lease of a device that had lost it', () => {
    const two = [verify(1, 2, 'a', 'n1'), redeem(3, 5, 'n1', 'r1'), redeem(4, 6, 'n1', 'r2')]
    expect(isLinearizable(two, RIGHT)).toBe(false)
    const lost = [verify(1, 2, 'a', 'n1'), verify(3, 4, 'b', 'n2'), redeem(5, 6, 'n1', 'r1')]
    expect(isLinearizable(lost, RIGHT)).toBe(false)
  })

  it('accepts a cancellation after the release, and finds a lease after the cancellation', () => {
    const cancel = (from: number, to: number) => step(from, to, 'markPurchaseCancelled', {})
    const steps = [verify(1, 2, 'a', 'n1'), redeem(3, 4, 'n1', 'r1'), cancel(5, 6)]
    expect(isLinearizable(steps, RIGHT)).toBe(true)
    expect(isLinearizable([cancel(1, 2), verify(3, 4, 'a', 'n1')], RIGHT)).toBe(false)
    expect(isLinearizable([cancel(1, 4), verify(2, 3, 'a', 'n1')], RIGHT)).toBe(true)
  })

  it('allows both results of a request without an answer', () => {
    const refused: Partial<Step> = { outcome: 'refused', reason: 'already_redeemed' }
    const steps = [verify(1, 2, 'a', 'n1'), redeem(3, 4, 'n1', 'r1', LOST), redeem(5, 6, 'n1', 'r2', refused)]
    expect(isLinearizable(steps, RIGHT)).toBe(true)
    expect(isLinearizable([...steps.slice(0, 2), redeem(5, 6, 'n1', 'r2')], RIGHT)).toBe(true)
    expect(isLinearizable([steps[0] as Step, steps[2] as Step], RIGHT)).toBe(false)
  })

  it('finds pieces that were sold twice, and points that were lost', () => {
    const start = (from: number, to: number, transactionId: string) =>
      step(from, to, 'startCheckout', { items: [{ quantity: 2 }] }, { answer: { transactionId } })
    const pieces = new Map([
      ['p1', 2],
      ['p2', 2],
    ])
    const both = [start(1, 3, 'p1'), start(2, 4, 'p2')]
    expect(isLinearizable(both, stockModel(4, pieces))).toBe(true)
    expect(isLinearizable(both, stockModel(3, pieces))).toBe(false)
    const add = (transactionId: string, newBalance: number) =>
      step(1, 9, 'addLoyaltyPoints', { amount: 5, transactionId }, { answer: { newBalance } })
    expect(isLinearizable([add('t1', 10), add('t2', 5)], BALANCE)).toBe(true)
    expect(isLinearizable([add('t1', 5), add('t2', 5)], BALANCE)).toBe(false)
  })
})

describe.skipIf(missing)(`histories of processes${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  beforeAll(ensureBuilt)

  it('have mutants that fit the built code', () => {
    for (const { name, changes } of HISTORY_MUTANTS)
      for (const { file, find } of changes)
        expect(readFileSync(join(ROOT, 'dist', file), 'utf8').split(find).length, name).toBe(2)
  })

  it('stay possible under lost connections, kills and crashes; one of many claimants wins', async () => {
    const load = IS_FULL_SIZE
      ? { seconds: 5, processes: 4, faultEvery: 1 }
      : { seconds: 2, processes: 3, faultEvery: 0.4, claimants: 16 }
    const { violations, faults } = await runHistories({ root: ROOT, bundle: bundledCommand, seed: 1, ...load })
    expect(violations).toEqual([])
    expect(faults).toBeGreaterThan(LOST_ANSWERS)
  })

  itInFullSize('become impossible if writes of one gate do not conflict', async () => {
    const cloudIn = withMutant(ROOT, 'gates-read-committed')
    const load = { seconds: 1, processes: 2, seed: 1, faultEvery: 0, contests: false }
    const { violations } = await runHistories({ root: ROOT, cloudIn, ...load })
    expect(violations).not.toEqual([])
  })

  itInFullSize('become impossible if a transaction with an unknown outcome runs again', async () => {
    const cloudIn = withMutant(ROOT, 'unknown-commit-repeated')
    const load = { seconds: 0, processes: 1, seed: 1, faultEvery: 1, contests: false }
    const { violations } = await runHistories({ root: ROOT, cloudIn, ...load })
    expect(violations[0]).toContain('points that were spent without an answer')
  })
})
