import { expect } from 'vitest'
import { ensureBuilt } from './built.ts'
import { temporaryFolder } from './databases.ts'
import { runProcess, startProcess, type RunningProcess } from './processes.ts'

export interface Answer {
  status: number
  retryAfter: string | null
  body: { code?: string; reason?: string; stores?: { storeId: string; securityTagMode: string }[] } & Record<
    string,
    unknown
  >
}

/** An insert that the cloud did not confirm, with the response. */
export interface Unconfirmed {
  ean: string
  answer: Answer
}

/** A cloud process with callers that insert products continuously. */
export interface CloudUnderLoad {
  process: RunningProcess
  storeId: string
  /** EANs of the confirmed inserts. */
  stored: readonly string[]
  refused: readonly Unconfirmed[]
  call(operation: string, body: unknown, idempotencyKey?: string): Promise<Answer>
  /** Inserts the product. The same EAN gives the same body and Idempotency-Key. */
  insert(ean: string): Promise<Answer>
  /** Fetches a page outside the API, such as `/readyz`. */
  page(path: string): Promise<{ status: number; body: unknown }>
  /** Resolves after this many more confirmed inserts. */
  confirmed(more: number): Promise<void>
  /** Resolves when reads succeed again. Rejects any earlier response except 503 `database_unavailable`. */
  answersAgain(): Promise<void>
  /** Ends the load; resolves with the response to the last call. */
  endLoad(): Promise<void>
  stop(): Promise<void>
}

export interface LoadOptions {
  /** PostgreSQL database. Default: SQLite. */
  databaseUrl?: string
  /** Number of concurrent callers. */
  callers?: number
  data?: string
}

/** Maximum number of times that a caller follows `Retry-After`. */
const TRIES = 2_000

export async function cloudUnderLoad({
  databaseUrl,
  callers = 8,
  data = temporaryFolder('load'),
}: LoadOptions): Promise<CloudUnderLoad> {
  ensureBuilt()
  const place = [`--data=${data}`, ...(databaseUrl === undefined ? [] : [`--database-url=${databaseUrl}`])]
  const account = ['--account=Shop', '--mode=test', '--package=PRIME', '--json']
  const made = await runProcess(['keys', 'create', ...place, ...account])
  const { key } = JSON.parse(made.stdout) as { key: string }
  const started = await startProcess(['cloud', '--port=0', '--mqtt-port=0', '--rate-limit=0', ...place])
  const baseUrl = String(started.ready['baseUrl'])
  const stored: string[] = []
  const refused: Unconfirmed[] = []
  let isOver = false

  const load: CloudUnderLoad = {
    process: started,
    storeId: '',
    stored,
    refused,
    async call(operation, body, idempotencyKey) {
      const answer = await fetch(`${baseUrl}/${operation}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
      })
      return {
        status: answer.status,
        retryAfter: answer.headers.get('retry-after'),
        body: (await answer.json()) as Answer['body'],
      }
    },
    insert(ean) {
      const product = { storeId: load.storeId, ean, name: `product ${ean}`, price: 1.99, vat: 19 }
      return load.call('insertProduct', product, `insert-${ean}`)
    },
    async page(path) {
      const answer = await fetch(new URL(path, baseUrl))
      return { status: answer.status, body: await answer.json() }
    },
    async confirmed(more) {
      const enough = stored.length + more
      for (let i = 0; i < TRIES && stored.length < enough; i++) await load.answersAgain()
      expect(stored.length).toBeGreaterThanOrEqual(enough)
    },
    async answersAgain() {
      for (let i = 0; i < TRIES; i++) {
        const answer = await load.call('fetchStores', {})
        if (answer.status === 200) return
        expect(answer).toMatchObject(UNAVAILABLE)
      }
      throw new Error('the cloud does not answer again')
    },
    async endLoad() {
      isOver = true
      await Promise.all(running)
    },
    async stop() {
      isOver = true
      await Promise.allSettled(running)
      await started.stop()
    },
  }
  const { body } = await load.call('fetchStores', {})
  load.storeId = body.stores?.find(({ securityTagMode }) => securityTagMode === 'rfid')?.storeId ?? ''
  const running = Array.from({ length: callers }, async (_, caller) => {
    for (let i = 0; !isOver; i++) {
      const ean = eanOf(caller, i)
      const answer = await load.insert(ean)
      if (answer.status === 200) stored.push(ean)
      else refused.push({ ean, answer })
    }
  })
  return load
}

/** The response of every call while the database is offline. */
export const UNAVAILABLE = { status: 503, retryAfter: '2', body: { reason: 'database_unavailable' } }

/** A unique EAN for the n-th insert of a caller. */
export function eanOf(caller: number, n: number): string {
  const digits = String(200_000_000_000 + caller * 1_000_000 + n)
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
