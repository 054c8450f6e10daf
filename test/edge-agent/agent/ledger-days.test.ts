import { afterEach, expect, it } from 'vitest'
import { publishLedgerDays } from '../../../cloud/protection/store-policy/policy-document.ts'
import { startHousekeeping } from '../../../edge-agent/housekeeping.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

const DAY_MS = 86_400_000

it('keeps acknowledged rows for the days of the signed policy', async () => {
  store = await openStore()
  const { agent, shop } = store
  const { ledger, trust } = agent
  const product = shop.products.toSorted((a, b) => a.price - b.price)[0]
  for (let n = 0; n < 2; n++) {
    const { receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices[LANES.station]
    await store.authorize({ deviceId, protectionAction: 'deactivate_label', receipt })
  }
  await store.until('all rows acknowledged', () => ledger.journal.head.seq >= 4 && ledger.journal.waiting === 0)
  /** Runs housekeeping once, some days from now. */
  const prune = async (days: number) => {
    const runs: (() => void)[] = []
    startHousekeeping({
      ledger,
      clock: { now: () => ({ ...agent.clock.now(), nowMs: agent.clock.now().nowMs + days * DAY_MS, trust: 'signed' }) },
      trust,
      timers: { ...store.world.timers, after: (_ms: number, run: () => void) => (runs.push(run), () => undefined) },
      log: { info: () => undefined, warn: () => undefined, error: (fields: unknown) => expect(fields).toBeUndefined() },
      onRun: () => undefined,
    } as unknown as Parameters<typeof startHousekeeping>[0])
    runs[0]?.()
    await store.drive(ledger.commits.durably(() => undefined))
  }
  const oldest = () => ledger.journal.unsent(1, 0).rows[0]?.seq
  expect(trust.policy?.ledgerDays).toBeUndefined()
  const first = oldest()
  await prune(3)
  expect(oldest()).toBe(first)
  await store.drive(shop.cloud.db.database.write((db) => publishLedgerDays(db, 2)))
  await store.until('the policy', () => trust.policy?.ledgerDays === 2)
  await prune(3)
  // The last acknowledged row stays, because the next batch contains its hash.
  expect(oldest()).toBe(ledger.journal.head.seq)
})
