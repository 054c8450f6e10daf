import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { secretFiles } from '../../../host/secret-files.ts'
import { openAuthority } from '../../../cloud/platform/authority/authority.ts'
import { keysOf, loadKeyFiles } from '../../../cloud/platform/authority/key-files.ts'
import { changeRoot } from '../../../cloud/platform/authority/signing-keys.ts'
import type { Tenant } from '../../../cloud/platform/foundation/caller.ts'
import type { Db } from '../../../cloud/platform/persistence/database.ts'
import { markRestored } from '../../../cloud/service/mark-restored.ts'
import { watchKeySetExpiry } from '../../../edge-agent/trust/key-set-expiry.ts'
import type { Json } from '../../support/cloud.ts'
import { replaceAgent } from '../../support/replace-agent.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

const station = () => store.shop.devices[LANES.station]
const file = () => (store.shop.cloud.db.location as { file: string }).file
const call = (operation: string, body: object): Promise<Json> => store.drive(store.shop.call(operation, body))
const ok = (operation: string, body: object): Promise<Json> => store.drive(store.shop.ok(operation, body))
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const buy = () => store.buy([{ ean: product().ean, quantity: 1 }])
const release = (receipt: string) =>
  store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', receipt })
const synced = () =>
  store.until(
    'an empty outbox',
    () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0 && !store.agent.trust.isBehind,
  )
const status = async (purchase: Json) =>
  (await ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
const raised = async (kind: string): Promise<Json[]> =>
  (await ok('fetchExceptions', { storeId: store.shop.storeId, kind })).exceptions
const resync = async (): Promise<string | null> =>
  (await store.shop.cloud.db.database.reads.selectFrom('agent').select('resync').executeTakeFirstOrThrow()).resync
const network = async (isUp: boolean) => {
  store.network(isUp)
  await store.until(isUp ? 'online' : 'offline', () => store.agent.link.isOnline === isUp)
}

/** Copies the database file of the cloud while the cloud is stopped. */
async function backUp(): Promise<void> {
  await synced()
  await store.drive(store.shop.cloud.restart(() => copyFileSync(file(), `${file()}.backup`)))
  await store.until('online again', () => store.agent.link.isOnline)
}

/** Replaces the cloud's database with the backup, and starts the cloud again. */
async function restore(also: (db: Db) => Promise<unknown> = async () => undefined): Promise<void> {
  store.network(false)
  await store.drive(
    store.shop.cloud.restart(async () => {
      for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix, { force: true })
      copyFileSync(`${file()}.backup`, file())
      const database = await store.shop.cloud.db.again()
      const files = await loadKeyFiles(keysOf(store.shop.cloud.keyFolder), secretFiles, store.world.random)
      await database.write((db) => markRestored(db, files, store.world))
      await database.write(also)
      await database.close()
    }),
  )
}

it('a restored cloud learns every redemption after the backup, each once', async () => {
  store = await openStore()
  const [online, offline, untouched] = [await buy(), await buy(), await buy()]
  await backUp()
  // One claim uses a token that the cloud loses in the restore, the other a receipt. The cloud acknowledges both.
  expect(await release(online.receipt)).toMatchObject({ authorized: true, offline: false })
  await network(false)
  expect(await release(offline.receipt)).toMatchObject({ authorized: true, offline: true })
  await network(true)
  await synced()
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['deactivated', 'deactivated'])
  const { head } = store.agent.ledger.journal

  await restore()
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['pending', 'pending'])
  const refused = await call('verifySecurityTagDeactivation', {
    purchaseId: online.purchase.transactionId,
    deviceId: station(),
  })
  expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable', reason: 'resyncing' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await call('verifySecurityTagDeactivation', { purchaseId: untouched.purchase.transactionId })).toMatchObject({
    status: 503,
  })

  await network(true)
  await synced()
  await store.until('the word that all was told', async () => (await resync()) === null)
  expect([await status(online.purchase), await status(offline.purchase)]).toEqual(['deactivated', 'deactivated'])
  for (const { purchase, receipt } of [online, offline]) {
    expect(
      await ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: station() }),
    ).toMatchObject({ deactivationAuthorized: false, authorizationToken: null })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  }
  expect(await release(untouched.receipt)).toMatchObject({ authorized: true, offline: false })
  expect(store.pulses('station')).toBe(3)
  for (const kind of [
    'double_redeem',
    'unapplied',
    'foreign_evidence',
    'agent_fork',
    'ledger_gap',
    'refused_document',
    'redeemed_after_revocation',
  ])
    expect([kind, await raised(kind)]).toEqual([kind, []])
  expect(store.agent.ledger.generation).toBe(1)
  // The agent has sent the rows again once. A restart does not repeat that.
  await store.restart()
  await synced()
  const rows = await store.shop.cloud.db.database.reads.selectFrom('journal_row').select('seq').orderBy('seq').execute()
  expect(rows.map((row) => row.seq)).toEqual(
    Array.from({ length: store.agent.ledger.journal.head.seq }, (_, i) => i + 1),
  )
  expect(store.agent.ledger.journal.head.seq).toBeGreaterThan(head.seq)
})

it('a restored cloud continues above all former numbers, so agents accept its policy, denials and items', async () => {
  store = await openStore()
  const { storeId } = store.shop
  const [doomed, other, later] = [await buy(), await buy(), await buy()]
  const { epc } = await store.drive(store.shop.newItem(product()))
  await backUp()
  // The versions before the restore are higher than those after it.
  for (let i = 0; i < 4; i++)
    await ok('updateProtectionPolicy', { storeId, policy: { requiresManualOverrideAboveValue: 900 + i } })
  for (let i = 0; i < 3; i++) {
    const { purchase } = await buy()
    await ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
  }
  const { tenant } = store.identity
  const revokeTokenKey = () =>
    store.drive(
      store.shop.cloud.db.database.write((db) =>
        store.shop.cloud.cloud.services.authority.rotate(db, { iss: tenant, use: 'token', revoke: true }),
      ),
    )
  const revoked = store.shop.cloud.cloud.services.authority.keysOf(tenant as Tenant).token.kid
  await revokeTokenKey()
  const { epc: forgotten } = await store.drive(store.shop.newItem(product()))
  await ok('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold', operatorId: 'op-1' })
  await store.until(
    'all of it at the agent',
    () =>
      store.agent.items.find('epc', epc)?.status === 'exception_hold' &&
      store.agent.items.find('epc', forgotten)?.status === 'sellable' &&
      !store.agent.trust.isBehind &&
      store.agent.trust.keys.get(revoked)?.state === 'revoked',
  )
  const before = { policy: store.agent.trust.policy, have: store.agent.trust.heldVersions() }

  await restore()
  await network(true)
  await synced()
  await store.until('the items', () => store.agent.items.find('epc', forgotten) === undefined)
  expect(store.agent.items.find('epc', epc)).toMatchObject({ status: 'sellable' })
  expect(store.agent.trust.policy?.policy.requiresManualOverrideAboveValue).not.toBe(
    before.policy?.policy.requiresManualOverrideAboveValue,
  )
  await ok('updateProtectionPolicy', { storeId, policy: { requiresManualOverrideAboveValue: 700 } })
  await ok('markPurchaseCancelled', { transactionId: doomed.purchase.transactionId })
  await ok('updateItemStatus', { storeId, epc, itemStatus: 'transfer_in_transit', operatorId: 'op-1' })
  await store.until(
    'all of it',
    () =>
      store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === 700 &&
      store.agent.items.find('epc', epc)?.status === 'transfer_in_transit',
  )
  await synced()
  await network(false)
  expect(await release(doomed.receipt)).toMatchObject({ authorized: false, reason: 'token_revoked', offline: true })
  expect(await release(other.receipt)).toMatchObject({ authorized: true, offline: true })
  await network(true)
  // The restored cloud lacks the revocation of a key. The agents send it the key set that revokes the key.
  const states = () =>
    store.shop.cloud.db.database.reads
      .selectFrom('signing_key')
      .select(['kid', 'state'])
      .where('iss', '=', tenant)
      .where('key_use', '=', 'token')
      .execute()
  const inState = async (state: string) => (await states()).filter((key) => key.state === state).map(({ kid }) => kid)
  await store.until('its revocation', async () => (await inState('revoked')).includes(revoked))
  const [follows = ''] = await inState('active')
  await store.until(
    'the key set',
    () => store.agent.trust.keys.get(follows)?.state === 'active' && !store.agent.trust.isBehind,
  )
  expect(store.agent.trust.revocationReminders).toEqual([])
  await synced()
  expect(await release(later.receipt)).toMatchObject({ authorized: true, offline: false })
  // The refund was paid after the agent confirmed the denial under its new number.
  await store.until(
    'the refund',
    async () =>
      (
        await store.shop.cloud.db.database.reads
          .selectFrom('purchase')
          .select('refund_status')
          .where('purchase_id', '=', doomed.purchase.transactionId)
          .executeTakeFirst()
      )?.refund_status === 'done',
    120_000,
  )
  expect(await raised('refused_document')).toEqual([])
  // The same backup is restored again. The time of the restore makes the generations different.
  await restore()
  await network(true)
  await synced()
  await store.until('the items of the backup again', () => store.agent.items.find('epc', epc)?.status === 'sellable')
  expect(await raised('refused_document')).toEqual([])
})

it('a time epoch that the backup lacks stays in force, and agents accept no earlier time', async () => {
  store = await openStore()
  await backUp()
  const { database } = store.shop.cloud.db
  const rotate = (revoke: boolean) =>
    store.drive(
      database.write((db) =>
        store.shop.cloud.cloud.services.authority.rotate(db, { iss: 'installation', use: 'freshness', revoke }),
      ),
    )
  for (const revoke of [false, false, true]) await rotate(revoke)
  await store.until('the epoch', () => store.agent.clock.epoch > 0)
  const { epoch } = store.agent.clock
  await restore()
  await network(true)
  const since = store.world.clock.wall()
  await store.until(
    'time again',
    () => store.agent.trust.lastContactMs > since && !store.agent.trust.isBehind,
    10 * 60_000,
  )
  expect([
    store.agent.clock.epoch,
    store.shop.cloud.cloud.services.authority.timeEpoch,
    store.agent.trust.revocationReminders,
  ]).toEqual([epoch, epoch, []])
  expect(store.agent.trust.stage()).toBe('fresh')
})

it('raises an exception for rows that cloud and agent both lack, and accepts later rows', async () => {
  store = await openStore()
  const [forgotten, kept, later] = [await buy(), await buy(), await buy()]
  await backUp()
  expect(await release(forgotten.receipt)).toMatchObject({ authorized: true })
  const { ledger } = store.agent
  // A row for the claim and one for the outcome.
  const toldAll = (rows: number) =>
    store.until('all rows', () => ledger.journal.head.seq === rows && ledger.journal.waiting === 0)
  await toldAll(2)
  expect(await release(kept.receipt)).toMatchObject({ authorized: true })
  await toldAll(4)
  // Prunes as housekeeping does with old rows. The agent does not send the oldest stored row, because only its hash is
  // needed.
  const [second] = ledger.journal.unsent(1, 1).rows
  await store.drive(ledger.commits.durably(() => ledger.journal.prune(second?.body.atMs ?? 0)))

  await restore()
  await network(true)
  await synced()
  await store.until('the word that all was told', async () => (await resync()) === null)
  const [gap, ...more] = await raised('ledger_gap')
  expect(more).toEqual([])
  expect(gap.detail).toMatch(/^rows 1 to 2 were lost with the cloud that was restored, and the agent has deleted them$/)
  expect(gap.subject.startsWith(store.agent.identity.agentId)).toBe(true)
  expect([await status(kept.purchase), await status(forgotten.purchase)]).toEqual(['deactivated', 'pending'])
  // The claim is still in the ledger, although its journal row is deleted. So the agent does not release it again.
  expect(await release(forgotten.receipt)).toMatchObject({ authorized: false })
  expect(await release(later.receipt)).toMatchObject({ authorized: true })
  await synced()
  expect(await status(later.purchase)).toBe('deactivated')
  expect(store.pulses('station')).toBe(3)
})

it('raises an exception for rows that a restored ledger lacks and the restored cloud lost', async () => {
  store = await openStore()
  const [told, later] = [await buy(), await buy()]
  await backUp()
  const ledger = (name: string) => join(store.dataDir, name)
  await store.restart(() => copyFileSync(ledger('ledger.db'), ledger('backup.db')))
  await synced()
  expect(await release(told.receipt)).toMatchObject({ authorized: true })
  await synced()
  await store.restart(() => {
    for (const suffix of ['-wal', '-shm']) rmSync(ledger(`ledger.db${suffix}`), { force: true })
    copyFileSync(ledger('backup.db'), ledger('ledger.db'))
  })
  await store.until('healed', () => store.agent.ledger.generation === 2)
  await synced()
  await restore()
  await network(true)
  await store.until('the word that all was told', async () => (await resync()) === null)
  expect(await raised('ledger_gap')).toMatchObject([
    {
      subject: `${store.agent.identity.agentId}/2`,
      detail: expect.stringMatching(/^since the backup the ledger went from generation 1 to 2:/),
    },
  ])
  expect(await release(later.receipt)).toMatchObject({ authorized: true })
})

it('an agent unknown to the restored cloud keeps its redemptions under a new identity', async () => {
  store = await openStore()
  const [used, untouched] = [await buy(), await buy()]
  await backUp()
  await network(false)
  expect(await release(used.receipt)).toMatchObject({ authorized: true, offline: true })
  await network(true)
  await synced()
  const { head } = store.agent.ledger.journal
  // The backup does not contain the agent, as if it was enrolled later.
  await restore(async (db) => {
    await db.updateTable('device').set({ agent_id: null }).execute()
    await db.deleteFrom('agent').execute()
  })
  await replaceAgent(store)
  expect(await status(used.purchase)).toBe('deactivated')
  expect(store.agent.ledger.journal.head.seq).toBeGreaterThanOrEqual(head.seq)
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
  await network(false)
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await release(untouched.receipt)).toMatchObject({ authorized: true, offline: true })
  expect(await raised('double_redeem')).toEqual([])
})

it('a restored cloud grants nothing until the successor of a replaced agent has reported', async () => {
  store = await openStore()
  await backUp()
  const { agentId: former } = store.agent.identity
  await network(false)
  await restore()
  const seen: [string, string | null][] = []
  store.onFetch(async (url) => {
    if (!url.endsWith('/fetchSignedDocuments')) return true
    const rows = await store.shop.cloud.db.database.reads
      .selectFrom('agent')
      .select(['agent_id', 'resync'])
      .where('revoked_ms', 'is', null)
      .execute()
    seen.push(...rows.map(({ agent_id, resync: state }): [string, string | null] => [agent_id, state]))
    return true
  })
  const { agentId } = await replaceAgent(store)
  expect(agentId).not.toBe(former)
  expect(seen[0]).toEqual([agentId, 'awaited'])
  await store.until(
    'the word that all was told',
    async () =>
      (
        await store.shop.cloud.db.database.reads
          .selectFrom('agent')
          .select('resync')
          .where('agent_id', '=', agentId)
          .executeTakeFirstOrThrow()
      ).resync === null,
  )
  expect(await release((await buy()).receipt)).toMatchObject({ authorized: true, offline: false })
})

it('agents reject a new root and report it, until they are re-enrolled', async () => {
  store = await openStore()
  const used = await buy()
  expect(await release(used.receipt)).toMatchObject({ authorized: true })
  await synced()
  const { keyFolder, db } = store.shop.cloud
  const before = store.agent.trust.heldVersions().keys
  store.network(false)
  await store.drive(
    store.shop.cloud.restart(async () => {
      rmSync(join(keyFolder, 'keys/root.json'))
      const files = await loadKeyFiles(keysOf(keyFolder), secretFiles, store.world.random)
      const database = await db.again()
      // The cloud does not sign with another root key until an administrator confirms the change.
      await expect(openAuthority(database, files, store.world)).rejects.toThrow(/root\.json is not the root key/)
      await database.write((tx) => changeRoot(tx, files.root.signer.kid))
      await database.close()
    }),
  )
  await network(true)
  await store.until('the refusal', async () =>
    (await raised('refused_document')).some((e) => e.detail.startsWith('keys+jwt: unknown_key')),
  )
  expect(store.agent.trust.heldVersions().keys).toEqual(before)
  const [former] = (await ok('fetchAgents', { storeId: store.shop.storeId })).agents
  await ok('revokeAgent', { agentId: former.agentId })
  // A new policy version frees the devices of the revoked agent at once.
  const { document_version: version } = await db.database.reads
    .selectFrom('store')
    .select('document_version')
    .where('store_id', '=', store.shop.storeId)
    .executeTakeFirstOrThrow()
  expect(version).toBeGreaterThan(store.agent.trust.policy?.ver ?? 0)
  await replaceAgent(store)
  expect(store.agent.trust.heldVersions().keys?.[0]).toBeGreaterThan(before?.[0] ?? 0)
  expect(store.agent.trust.policy?.agents).toMatchObject([{ agentId: store.agent.identity.agentId }])
  await network(false)
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
})

it('reports once a day that the key set ends soon', async () => {
  store = await openStore()
  const { agent } = store
  const endsS = agent.trust.keysEndS ?? 0
  const nowMs = agent.clock.now().nowMs
  expect(endsS - nowMs / 1_000).toBeGreaterThan(399 * 86_400)
  const look = watchKeySetExpiry({
    platform: store.world,
    ledger: agent.ledger,
    storeId: store.shop.storeId,
    trust: agent.trust,
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  })
  const told = async () => (await raised('key_set_ending')).map((e) => e.detail)
  look(endsS * 1_000 - 31 * 86_400_000)
  await synced()
  expect(await told()).toEqual([])
  look(endsS * 1_000 - 29 * 86_400_000)
  look(endsS * 1_000 - 29 * 86_400_000 + 3_600_000)
  await store.until('the word', async () => (await told()).length > 0)
  expect(await told()).toEqual(['the key set ends in 29 days, and the agent has no newer one'])
})
