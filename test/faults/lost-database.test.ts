import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { ensureBuilt } from '../support/built.ts'

const server = await startPostgres()
/** Callers that insert products one after the other. */
const CALLERS = 8
const ROUNDS = 4

interface Answer {
  status: number
  retryAfter: string | null
  body: { code?: string; reason?: string; stores?: { storeId: string }[] }
}

describe.skipIf(server === undefined)(
  `a cloud that loses its database${server === undefined ? ' (skipped: install the package postgresql)' : ''}`,
  () => {
    const { url } = server ?? { url: '' }
    let cloud: RunningProcess
    let key: string
    let storeId: string
    let admin: pg.Client
    let isLoadOver = false
    let callers: Promise<void>[] = []
    const stored: string[] = []
    const refused: Answer[] = []

    async function call(operation: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
      const answer = await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      return {
        status: answer.status,
        retryAfter: answer.headers.get('retry-after'),
        body: (await answer.json()) as Answer['body'],
      }
    }

    async function page(path: string): Promise<{ status: number; body: unknown }> {
      const answer = await fetch(new URL(path, cloud.ready['baseUrl']))
      return { status: answer.status, body: await answer.json() }
    }

    async function insertAgainAndAgain(caller: number): Promise<void> {
      for (let i = 0; !isLoadOver; i++) {
        const ean = withCheckDigit(String(200_000_000_000 + caller * 1_000_000 + i))
        const product = { storeId, ean, name: `product ${ean}`, price: 1.99, vat: 19 }
        const answer = await call('insertProduct', product, { 'idempotency-key': `insert-${ean}` })
        if (answer.status === 200) stored.push(product.ean)
        else refused.push(answer)
      }
    }

    const rounds = async (fault: () => Promise<void>) => {
      for (let round = 0; round < ROUNDS; round++) {
        await answersAgain()
        const before = stored.length
        for (let i = 0; i < 2_000 && stored.length < before + 20; i++) await answersAgain()
        expect(stored.length).toBeGreaterThanOrEqual(before + 20)
        await fault()
      }
      await answersAgain()
      expect(cloud.child.exitCode).toBe(null)
    }

    /** Bounded by the retries of a caller that follows `Retry-After`. */
    async function answersAgain(): Promise<void> {
      for (let attempt = 0; attempt < 200; attempt++) {
        const answer = await call('fetchStores', {})
        if (answer.status === 200) return
        expect(answer).toMatchObject({ status: 503, retryAfter: '2', body: { reason: 'database_unavailable' } })
      }
      throw new Error('the cloud does not answer again')
    }

    beforeAll(async () => {
      ensureBuilt()
      const data = temporaryFolder('lost-database')
      const database = `--database-url=${url}`
      const made = await runProcess(['keys', 'create', `--data=${data}`, database, '--account=Shop', '--json'])
      key = (JSON.parse(made.stdout) as { key: string }).key
      cloud = await startProcess(['cloud', '--port=0', '--mqtt-port=0', '--rate-limit=0', `--data=${data}`, database])
      const { body } = await call('fetchStores', {})
      storeId = body.stores?.[0]?.storeId ?? ''
      callers = Array.from({ length: CALLERS }, (_, caller) => insertAgainAndAgain(caller))
    })
    afterAll(async () => {
      isLoadOver = true
      await Promise.allSettled(callers)
      await cloud?.stop()
      await server?.stop()
    })

    it('keeps running and answers again after all its connections were terminated under load', async () => {
      admin = new pg.Client({ connectionString: url })
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
            const [read, write] = await Promise.all([
              call('fetchProducts', { storeId }),
              call('insertProduct', { storeId, ean: '4006381333931', name: 'pen', price: 1, vat: 19 }),
            ])
            expect(await page('/healthz')).toEqual({ status: 200, body: { ok: true } })
            expect(await page('/readyz')).toMatchObject({ status: 503, body: { unready: [{ check: 'database' }] } })
            for (const answer of [read, write])
              expect(answer).toMatchObject({ status: 503, retryAfter: '2', body: { reason: 'database_unavailable' } })
          })
        })
      },
    )

    it('refused nothing with another error, and lost nothing that it had confirmed', async () => {
      isLoadOver = true
      await Promise.all(callers)
      expect(stored.length).toBeGreaterThan(ROUNDS * 20)
      expect(refused.filter(({ status, body }) => status !== 503 || body.reason !== 'database_unavailable')).toEqual([])
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const { rows } = await client.query<{ ean: string }>('SELECT ean FROM product')
      await client.end()
      const known = new Set(rows.map(({ ean }) => ean))
      expect(stored.filter((ean) => !known.has(ean))).toEqual([])
      expect(cloud.stderr()).not.toContain('a job failed')
    })
  },
)

function withCheckDigit(digits: string): string {
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
