import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { secretFiles } from '../../host/secret-files.ts'
import { enrol, storeFirstDocuments, adoptLedger } from '../../edge-agent/enrolment/enrol.ts'
import { readIdentity, writeIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import type { TestStore } from './store.ts'

/**
 * Stops the agent and replaces it on its machine `times` times, like `untag edge enrol --replace`. Returns the new
 * identity.
 */
export async function replaceAgent(
  store: TestStore,
  meanwhile: (former: Identity) => Promise<unknown> = async () => undefined,
  times = 1,
): Promise<Identity> {
  let made: Identity | undefined
  const enrolAnew = async () => {
    const former = readIdentity(store.dataDir, secretFiles)
    if (!former) throw new Error('no agent')
    const { code } = await store.drive(store.shop.ok('createEnrolmentCode', { storeId: store.shop.storeId }))
    const enrolled = await store.drive(
      enrol({ cloud: store.shop.cloud.baseUrl, code, former, platform: store.world, fetch: store.fetch }),
    )
    if (!enrolled.ok) throw new Error(enrolled.why)
    await meanwhile(former)
    const ledger = join(store.dataDir, 'ledger.db')
    adoptLedger(ledger, former, enrolled.identity)
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(store.dataDir, `items.db${suffix}`), { force: true })
    storeFirstDocuments(ledger, enrolled.identity, enrolled.documents, store.world)
    writeIdentity(store.dataDir, enrolled.identity, secretFiles)
    made = enrolled.identity
  }
  await store.restart(async () => {
    store.network(true)
    for (let n = 0; n < times; n++) await enrolAnew()
  })
  await store.until(
    'an empty outbox',
    () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0 && !store.agent.trust.isBehind,
  )
  if (!made) throw new Error('the agent was not enrolled')
  return made
}
