import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { collectErasures, readErasures, writeErasures } from '../../../../host/backup/erasures.ts'
import { addErasures, completeErasures, listErasures } from '../../../../cloud/sales/customers/erasures.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import { onEveryDatabase, temporaryFolder } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('erasures after a restore', (kind) => {
  let shop: Shop
  let folder: string
  beforeAll(async () => {
    shop = await openShop(kind)
    folder = temporaryFolder('erasures')
  })
  afterAll(async () => {
    await shop.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const follow = (userId: string) => shop.ok('recordEngagement', { type: 'follow', storeId: shop.storeId, userId })
  const follows = async (userId: string) => (await shop.ok('exportCustomerData', { userId })).records.follows.length
  const write = <T>(work: (db: Db) => Promise<T>) => shop.cloud.db.database.write(work)
  const complete = () => completeErasures(shop.cloud.db.database, shop.cloud.cloud.services)

  it('are repeated if the restored database lacks them, and only then', async () => {
    const { database } = shop.cloud.db
    await follow('lost')
    await shop.ok('eraseCustomerData', { userId: 'lost' })
    const listed = await listErasures(database.reads)
    expect(listed).toHaveLength(1)
    expect(JSON.stringify(listed)).not.toContain('lost')
    const { sealer } = shop.cloud.cloud.services.authority

    // The customer returns after the erasure: a restore of a newer backup keeps this data.
    await follow('lost')
    expect(await write((db) => addErasures(db, listed, sealer))).toEqual({ added: 0, unreadable: 0 })
    await complete()
    expect(await follows('lost')).toBe(1)

    // A backup from before the erasure lacks the entry.
    await write((db) => db.deleteFrom('erasure').execute())
    const foreign = { erasureId: 'era_foreign', atMs: 1, sealed: String(listed[0]?.sealed) }
    expect(await write((db) => addErasures(db, [...listed, foreign], sealer))).toEqual({ added: 1, unreadable: 1 })
    await complete()
    expect(await follows('lost')).toBe(0)
    await follow('lost')
    await complete()
    expect(await follows('lost')).toBe(1)
    expect(shop.cloud.errors).toEqual([])
  })

  it('are collected from all backups beside the restored one', async () => {
    const entry = (erasureId: string) => ({ erasureId, atMs: 1, sealed: 'k.x' })
    const backup = (name: string, ids: string[]) => {
      const path = join(folder, name)
      mkdirSync(path)
      writeErasures(path, ids.map(entry))
      writeFileSync(join(path, 'backup.json'), '{}')
      return path
    }
    const from = backup('untag-2026-11-20T09-00-00-000Z', ['era_1'])
    backup('untag-2026-11-21T09-00-00-000Z', ['era_1', 'era_2'])
    const damaged = backup('untag-2026-11-22T09-00-00-000Z', ['era_3'])
    const staging = join(folder, 'restoring')
    mkdirSync(staging)
    writeErasures(staging, [entry('era_4')])
    const place = { data: join(folder, 'none'), databaseUrl: undefined }
    const notes: string[] = []
    const ids = async () =>
      (await collectErasures(place, { from, staging }, (note) => notes.push(note))).map(({ erasureId }) => erasureId)
    expect(await ids()).toEqual(['era_4', 'era_3', 'era_2', 'era_1'])
    expect(notes).toEqual([])
    writeFileSync(join(damaged, 'erasures.json'), readFileSync(join(damaged, 'erasures.json')).subarray(0, 9))
    expect(await ids()).toEqual(['era_4', 'era_2', 'era_1'])
    expect(notes).toEqual([expect.stringMatching(/were not read: .*erasures\.json is damaged/)])
    expect(readErasures(join(folder, 'none'))).toEqual([])
  })
})
