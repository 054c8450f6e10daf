import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { openLedger } from '../../../edge-agent/ledger/ledger.ts'
import { atLanes } from '../../support/at-lanes.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const NOW_S = 1_800_000_000
const HOUR = 3_600_000
const DAY = 24 * HOUR

describe('the floor of a pruned ledger', () => {
  it('rejects every token and receipt that ended at or below it, at any clock time, after prunings and restarts', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('prune' as const), atS: fc.integer({ min: -50, max: 50 }) }),
      fc.record({ kind: fc.constant('restart' as const) }),
      fc.record({
        kind: fc.constant('claim' as const),
        nonce: fc.integer({ min: 0, max: 9 }),
        source: fc.constantFrom('token' as const, 'receipt' as const),
        endS: fc.integer({ min: -60, max: 60 }),
        clockS: fc.constantFrom(-NOW_S, -86_400, -1, 0, 1, 86_400),
      }),
    )
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        const folder = temporaryFolder('floor')
        const file = join(folder, 'ledger.db')
        const open = () =>
          openLedger({
            file,
            ledgerId: 'led_1',
            generation: 1,
            onFailure(failure) {
              throw failure
            },
          })
        let ledger = open()
        let floor = -Infinity
        const used = new Set<string>()
        try {
          for (const each of steps) {
            if (each.kind === 'prune') {
              ledger.commits.now(() => ledger.claims.prune(NOW_S + each.atS))
              floor = Math.max(floor, each.atS)
            } else if (each.kind === 'restart') {
              ledger.close()
              ledger = open()
            } else {
              // The nonce contains the expiry, because the cloud never signs the same nonce with another expiry.
              const nonce = `${each.source}-${each.nonce}-${each.endS}`
              const answer = await ledger.claim(
                {
                  redemptionId: `red-${runs++}`,
                  source: each.source,
                  nonce,
                  rightClass: 'release',
                  candidates: [0],
                  all: false,
                  exp: NOW_S + each.endS,
                  deviceId: 'dev_1',
                  nowMs: (NOW_S + each.clockS) * 1_000,
                },
                () => undefined,
              )
              if (each.endS <= floor) expect(answer).toEqual({ ok: false, reason: 'token_expired' })
              else expect(answer.ok).toBe(!used.has(nonce))
              if (answer.ok) {
                used.add(nonce)
                await ledger.settle(`red-${runs - 1}`, 'confirmed', NOW_S * 1_000)
              }
            }
          }
        } finally {
          ledger.close()
          rmSync(folder, { recursive: true, force: true })
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('an agent whose clock is set back after pruning', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, offline, product } = atLanes(() => store)

  const claims = () => {
    const db = new Sqlite(join(store.dataDir, 'ledger.db'), { readonly: true })
    const { n } = db.prepare('SELECT COUNT(*) AS n FROM claim').get() as { n: number }
    db.close()
    return n
  }

  it('releases no unit a second time, while it runs, after a restart and after a reboot', async () => {
    store = await openStore()
    const { world, shop } = store
    const [by, other] = [
      await store.buy([{ ean: product().ean, quantity: 1 }]),
      await store.buy([{ ean: product().ean, quantity: 1 }]),
    ]
    const { authorizationToken: token } = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: other.purchase.transactionId,
      deviceId: device('station'),
    })
    await offline()
    const soldAt = world.clock.wall()
    const showToken = () =>
      store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', token })
    expect(await release(by.receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await showToken()).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(claims()).toBe(2)

    // Receipt and token expired over an hour ago, so housekeeping deletes their claims.
    world.sleep(26 * HOUR)
    await world.advance(1_000)
    expect(claims()).toBe(0)

    const setBack = () => world.setWall(soldAt)
    for (const next of [
      setBack,
      () => store.restart(setBack),
      () => store.restart(() => (world.reboot(), setBack())),
    ]) {
      await next()
      expect(await release(by.receipt)).toMatchObject({ authorized: false, outcome: null })
      expect(await showToken()).toMatchObject({ authorized: false, outcome: null })
      expect(store.agent.ledger.claims.floor).toBeGreaterThan((soldAt + DAY) / 1_000)
    }
    expect(store.pulses('station')).toBe(2)
  })
})
