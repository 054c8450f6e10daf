// @module-tag extended
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, whyNoPostgres, type PostgresServer } from '../verification/kills/postgres-server.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { cloudUnderLoad, UNAVAILABLE, type CloudUnderLoad } from '../support/cloud-under-load.ts'

const missing = whyNoPostgres()
const ROUNDS = IS_FULL_SIZE ? 4 : 1

describe.skipIf(missing)(`a cloud that loses its database${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let server: PostgresServer | undefined
  let load: CloudUnderLoad

  const rounds = async (fault: () => Promise<void>) => {
    for (let round = 0; round < ROUNDS; round++) {
      await load.answersAgain()
      await load.confirmed(20)
      await fault()
    }
    await load.answersAgain()
    expect(load.process.child.exitCode).toBe(null)
  }

  beforeAll(async () => {
    server = (await startPostgres()) as PostgresServer
    load = await cloudUnderLoad({ databaseUrl: server.url })
  })
  afterAll(async () => {
    await load?.stop()
    await server?.stop()
  })

  it('keeps running and serves again after all its connections were terminated under load', async () => {
    const admin = new pg.Client({ connectionString: server?.url })
    await admin.connect()
    await rounds(async () => {
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()')
    })
    await admin.end()
  })

  it.each(['fast', 'immediate'] as const)(
    'answers 503 with Retry-After while the server restarts (%s), and succeeds afterwards',
    async (mode) => {
      await rounds(async () => {
        await (server as PostgresServer).restart(mode, async () => {
          const { storeId } = load
          const [read, write] = await Promise.all([
            load.call('fetchProducts', { storeId }),
            load.call('insertProduct', { storeId, ean: '4006381333931', name: 'pen', price: 1, vat: 19 }),
          ])
          expect(await load.page('/healthz')).toEqual({ status: 200, body: { ok: true } })
          expect(await load.page('/readyz')).toMatchObject({
            status: 503,
            body: { unready: [{ check: 'database' }] },
          })
          for (const answer of [read, write]) expect(answer).toMatchObject(UNAVAILABLE)
        })
      })
    },
  )

  it('causes no other error and loses no confirmed data', async () => {
    await load.endLoad()
    expect(load.stored.length).toBeGreaterThan(ROUNDS * 20)
    const others = load.refused.filter(
      ({ answer }) => answer.status !== 503 || answer.body.reason !== 'database_unavailable',
    )
    expect(others).toEqual([])
    const client = new pg.Client({ connectionString: server?.url })
    await client.connect()
    const { rows } = await client.query<{ ean: string }>('SELECT ean FROM product')
    await client.end()
    const known = new Set(rows.map(({ ean }) => ean))
    expect(load.stored.filter((ean) => !known.has(ean))).toEqual([])
    expect(load.process.stderr()).not.toContain('a job failed')
  })
})
