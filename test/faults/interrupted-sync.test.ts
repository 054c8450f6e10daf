// @module-tag extended
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import { squareSystem } from '../../simulators/services/pos-square.ts'
import { vendorGoods, type SimulatedVendor } from '../../simulators/services/vendor-server.ts'
import { ensureBuilt } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

/** After a kill during a synchronization, stored pages remain and the next call continues after them. */
describe('a cloud that is killed while it reads from a till', () => {
  const folder = temporaryFolder('sync')
  const data = join(folder, 'cloud')
  let till: SimulatedVendor
  let cloud: RunningProcess

  const startCloud = async () =>
    void (cloud = await startProcess([
      'cloud',
      '--port',
      '0',
      '--mqtt-port',
      '0',
      '--data',
      data,
      '--allow-private-targets',
    ]))
  const makeKey = async (kind: string) =>
    (
      await runProcess(['keys', 'create', '--data', data, '--account', 'Laden', '--mode', 'live', '--kind', kind])
    ).stdout.trim()
  const call = async (key: string, operation: string, body: object): Promise<Json> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return (
      await fetch(`${cloud.ready['baseUrl']}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
    ).json()
  }

  beforeAll(async () => {
    ensureBuilt()
    till = await squareSystem({ goods: vendorGoods(20), pageSize: 3 })
    await startCloud()
  })
  afterAll(async () => {
    await cloud.stop()
    await till.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('loses nothing and reads no page twice', async () => {
    const [key, admin] = [await makeKey('secret'), await makeKey('admin')]
    const address = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }
    const { registrationId } = await call(key, 'insertStore', {
      companyName: 'Hafenkante GmbH',
      tradingName: 'Hafenkante',
      address,
      phone: '+4940555010100',
    })
    const { storeId } = await call(admin, 'approveStoreRegistration', { registrationId, package: 'grow' })
    const request = { storeId, system: 'square', credentials: till.credentials }
    const pagesOf = () =>
      till.requests.filter(({ query }) => query.get('types') === 'ITEM').map(({ query }) => query.get('cursor'))

    till.gate = () => {
      if (pagesOf().length < 4) return undefined
      cloud.child.kill('SIGKILL')
      return 'reset'
    }
    await expect(call(key, 'syncPOS', request)).rejects.toThrow()
    await cloud.kill()
    till.gate = undefined
    const read = pagesOf()

    // The lease of the dead process would block the next call for a minute, so the test ends it.
    const database = await openDatabase({ file: join(data, 'cloud.db') }, (failure) => {
      throw failure
    })
    expect(await database.reads.selectFrom('integration_pull').select(['next_cursor', 'is_done']).execute()).toEqual([
      { next_cursor: read[3], is_done: 0 },
    ])
    await database.write((db) => db.updateTable('integration_connection').set({ lease_until_ms: 0 }).execute())
    await database.close()

    await startCloud()
    expect((await call(key, 'fetchProducts', { storeId })).total).toBe(9)
    expect(await call(key, 'syncPOS', request)).toMatchObject({
      success: true,
      synced: { products: 20, categories: 3 },
      errorCount: 0,
    })
    expect(pagesOf()[read.length]).toBe(read[3])
    expect((await call(key, 'fetchProducts', { storeId })).total).toBe(20)
    const rounds = (await call(key, 'fetchWebhookEvents', { storeId })).events ?? []
    expect(rounds.filter((e: Json) => e.event === 'integration.pos.synced')).toHaveLength(1)
  })
})
