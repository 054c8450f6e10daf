import { afterEach, expect, it, vi } from 'vitest'
import { BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import { decodeUnverifiedClaims } from '../../../policy/documents/signed-document.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { newId } from '../../../policy/ids.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { cutLine } from '../../support/memory-broker.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const DAY = 86_400_000
const DAYS = 7
const DENIALS_A_DAY = 250
/** Maximum batches under way (edge-agent/link/reports/sender). */
const WINDOW = 3

let store: TestStore
afterEach(() => store.stop())
const { device, release, offline, synced, product } = atLanes(() => store)

/** Records the denied scans of one offline day, as lanes do. */
async function refuseAll(): Promise<string[]> {
  const { agent, world, identity } = store
  const ids: string[] = []
  await Promise.all(
    Array.from({ length: DENIALS_A_DAY }, (_, n) => {
      const event: ProtectionEvent = {
        type: 'protection.authorization.denied',
        eventId: newId('evt', world),
        occurredAt: new Date(world.clock.wall() + n).toISOString(),
        storeId: identity.storeId,
        deviceId: device('station'),
        protectionAction: 'deactivate_label',
        reason: 'token_invalid',
        offline: true,
      }
      ids.push(event.eventId)
      return agent.ledger.record({ atMs: world.clock.wall() + n, event })
    }),
  )
  return ids
}

async function toldEvents(type: string): Promise<Json[]> {
  const told: Json[] = []
  let cursor: string | null = null
  do {
    const page: Json = await store.drive(
      store.shop.ok('fetchProtectionEvents', {
        storeId: store.shop.storeId,
        type,
        limit: 500,
        ...(cursor !== null && { cursor }),
      }),
    )
    told.push(...page['events'])
    cursor = page['nextCursor'] ?? null
  } while (cursor !== null)
  return told
}

it.each([
  ['over the broker', true],
  ['over HTTP', false],
])('an agent that was offline for a week sends every row once, a few batches at a time (%s)', async (_, broker) => {
  store = await openStore({ broker })
  const { world, shop, identity } = store
  const rowsBefore = store.agent.ledger.journal.head.seq
  await offline()
  if (broker) cutLine(shop.cloud.cloud, identity.agentId)
  const refused: string[] = []
  const released: string[] = []
  for (let day = 0; day < DAYS; day++) {
    // The agent honours receipts until its policy expires after 80 hours.
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const answer = await release(receipt)
    expect(answer['authorized']).toBe(day < 4)
    if (answer['authorized'] === true) released.push(purchase.transactionId)
    refused.push(...(await refuseAll()))
    world.sleep(DAY)
  }
  const { waiting } = store.agent.ledger.journal
  expect(waiting).toBeGreaterThan(DAYS * DENIALS_A_DAY)

  // Counts the batches and rows under way, over HTTP and the broker. The first batch is lost.
  let calls = 0
  let batches = 0
  let mostRows = 0
  const { hooks } = shop.cloud.cloud.messages
  const take = hooks.onMessage
  vi.spyOn(hooks, 'onMessage').mockImplementation((agent, topic, payload) => {
    if (!topic.endsWith('/events')) return take(agent, topic, payload)
    const { seqTo } = decodeUnverifiedClaims(payload.toString()) as { seqTo: number }
    mostRows = Math.max(mostRows, seqTo - store.agent.ledger.journal.acked)
    if (++batches > 1) take(agent, topic, payload)
  })
  store.onFetch((url) => {
    if (url.endsWith('/reportProtectionEvents')) calls++
    return true
  })
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline, 120_000)
  await store.until('some of it', () => store.agent.ledger.journal.waiting < waiting / 2, 300_000)
  // The agent restarts while it sends.
  await store.restart()
  await store.until('online', () => store.agent.link.isOnline, 120_000)
  const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
  expect(await release(receipt)).toMatchObject({ authorized: true, offline: false, outcome: 'confirmed' })
  await synced()

  const { seq } = store.agent.ledger.journal.head
  expect(seq).toBeGreaterThan(rowsBefore + waiting)
  const rows = await shop.cloud.db.database.reads
    .selectFrom('journal_row')
    .select(['seq', 'applied'])
    .where('ledger_id', '=', identity.ledgerId)
    .orderBy('seq')
    .execute()
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: seq }, (_row, n) => n + 1))
  const told = (await toldEvents('protection.authorization.denied')).map(({ eventId }) => eventId as string)
  expect(refused.filter((id) => !told.includes(id))).toEqual([])
  expect(new Set(told).size).toBe(told.length)
  for (const purchaseId of released) {
    const done = await store.drive(
      shop.ok('fetchProtectionEvents', { storeId: shop.storeId, purchaseId, type: 'protection.action.completed' }),
    )
    expect(done.events).toHaveLength(1)
  }
  const fewest = Math.ceil(waiting / BATCH_LIMIT)
  if (broker) {
    expect(batches).toBeGreaterThan(WINDOW)
    expect(mostRows).toBe(WINDOW * BATCH_LIMIT)
  }
  expect(batches + calls).toBeLessThan(fewest + 20)
  vi.restoreAllMocks()
})
