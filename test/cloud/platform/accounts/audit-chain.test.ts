import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sealAudit, verifyAudit, type Verification } from '../../../../cloud/platform/accounts/audit-chain.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('the audit chain', (kind) => {
  let shop: Shop
  let tenant: string
  beforeAll(async () => {
    shop = await openShop(kind)
    for (let n = 0; n < 12; n++)
      await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate', name: `${n}` })
    tenant = (
      await shop.cloud.db.database.reads
        .selectFrom('store')
        .select('tenant')
        .where('store_id', '=', shop.storeId)
        .executeTakeFirstOrThrow()
    ).tenant
  })
  afterAll(() => shop.stop())

  const { now } = { now: () => shop.cloud.platform.clock.wall() }
  const seal = (later = 60_000) => sealAudit(shop.cloud.db.database, now() + later)
  const verify = (): Promise<Verification> => verifyAudit(shop.cloud.db.database.reads)
  const write = (work: (db: Db) => Promise<unknown>) => shop.cloud.db.database.write(work)

  it('seals entries after a short delay, each once, in order', async () => {
    expect(await sealAudit(shop.cloud.db.database, 0)).toBe(0)
    expect(await seal()).toBeGreaterThanOrEqual(12)
    expect(await seal()).toBe(0)
    const { chains, unsealed } = await verify()
    expect([unsealed, chains.filter((chain) => chain.broken)]).toEqual([0, []])
    const { entries } = await shop.ok('fetchAuditLog', { limit: 500 })
    const [first, second] = [1, 2].map((number) => entries.find((e: Json) => e.number === number))
    expect(second.previousHash).toBe(first.hash)
  })

  it('continues from its end, also when several processes seal at once', async () => {
    for (let n = 0; n < 8; n++) await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })
    const other = await shop.cloud.db.again()
    const counts = await Promise.all([
      seal(),
      sealAudit(kind === 'postgres' ? other : shop.cloud.db.database, now() + 60_000),
      seal(),
    ])
    await other.close()
    expect(counts.reduce((a, b) => a + b)).toBe(8)
    expect((await verify()).chains.filter((chain) => chain.broken)).toEqual([])
  })

  it('seals a change in the order of its commit, not of its start', async () => {
    const row = {
      entry_id: 'aud_00000000000000000000000000',
      tenant,
      at_ms: 1,
      actor: 'late',
      operation: 'x',
      entity_id: null,
      request_id: 'r',
    }
    await write((db) => db.insertInto('audit_entry').values(row).execute())
    expect((await verify()).unsealed).toBe(1)
    expect(await seal()).toBe(1)
    expect((await verify()).chains.filter((chain) => chain.broken)).toEqual([])
  })

  it.each<[string, (db: Db) => Promise<unknown>, { number: number; why: RegExp }]>([
    [
      'a changed actor',
      (db) =>
        db
          .updateTable('audit_entry')
          .set({ actor: 'somebody' })
          .where('tenant', '=', tenant)
          .where('seq', '=', 5)
          .execute(),
      { number: 5, why: /was changed after it was sealed/ },
    ],
    [
      'a changed time',
      (db) => sql`UPDATE audit_entry SET at_ms = at_ms + 1 WHERE tenant = ${tenant} AND seq = 3`.execute(db),
      { number: 3, why: /was changed after it was sealed/ },
    ],
    [
      'a removed entry',
      (db) => db.deleteFrom('audit_entry').where('tenant', '=', tenant).where('seq', '=', 7).execute(),
      { number: 7, why: /missing/ },
    ],
    [
      'a removed end',
      (db) => db.deleteFrom('audit_entry').where('tenant', '=', tenant).where('seq', '>', 18).execute(),
      { number: 19, why: /missing/ },
    ],
    [
      'a removed entry with renumbered successors',
      async (db) => {
        await db.deleteFrom('audit_entry').where('tenant', '=', tenant).where('seq', '=', 4).execute()
        for (let seq = 5; seq < 30; seq++)
          await db
            .updateTable('audit_entry')
            .set({ seq: seq - 1 })
            .where('tenant', '=', tenant)
            .where('seq', '=', seq)
            .execute()
      },
      { number: 4, why: /previous hash/ },
    ],
    [
      'two swapped entries',
      async (db) => {
        for (const [from, to] of [
          [2, 900],
          [3, 2],
          [900, 3],
        ] as const)
          await db
            .updateTable('audit_entry')
            .set({ seq: to })
            .where('tenant', '=', tenant)
            .where('seq', '=', from)
            .execute()
      },
      { number: 2, why: /previous hash/ },
    ],
    [
      'a forged seal',
      (db) =>
        db
          .updateTable('audit_entry')
          .set({ entity_id: 'x', hash: 'x' })
          .where('tenant', '=', tenant)
          .where('seq', '=', 6)
          .execute(),
      { number: 6, why: /was changed after it was sealed/ },
    ],
    [
      'a lost head',
      (db) => db.deleteFrom('audit_head').where('tenant', '=', tenant).execute(),
      { number: expect.any(Number), why: /head/ } as never,
    ],
  ])('detects %s', async (_, tamper, { number, why }) => {
    const rows = await shop.cloud.db.database.reads
      .selectFrom('audit_entry')
      .selectAll()
      .where('tenant', '=', tenant)
      .execute()
    const heads = await shop.cloud.db.database.reads.selectFrom('audit_head').selectAll().execute()
    await write(tamper)
    const { chains } = await verify()
    expect(chains.find((chain) => chain.tenant === tenant)?.broken).toMatchObject({
      number,
      why: expect.stringMatching(why),
    })
    expect(chains.filter((chain) => chain.tenant !== tenant && chain.broken)).toEqual([])
    await write(async (db) => {
      await db.deleteFrom('audit_entry').where('tenant', '=', tenant).execute()
      await db.deleteFrom('audit_head').execute()
      for (const { seq, prev_hash, hash, ...row } of rows) {
        await db.insertInto('audit_entry').values(row).execute()
        await db.updateTable('audit_entry').set({ seq, prev_hash, hash }).where('entry_id', '=', row.entry_id).execute()
      }
      await db.insertInto('audit_head').values(heads).execute()
    })
    expect((await verify()).chains.filter((chain) => chain.broken)).toEqual([])
  })

  it('leaves no error in the log', () => expect(shop.cloud.errors).toEqual([]))
})
