import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { DatabaseUnavailable, type Database } from '../../cloud/persistence/database.ts'
import { openPostgres } from '../../cloud/persistence/postgres.ts'
import type { StorageState } from '../../cloud/persistence/storage-state.ts'
import { newPostgresDatabase } from '../support/databases.ts'

const has = inject('postgresUrl') !== ''
/** Short, so that the tests do not wait; far above what an answer takes. */
const LIMITS = { connectMs: 1_000, statementMs: 1_000 }

/** A network between cloud and server. It passes bytes on, swallows them, or cuts all connections. */
interface Network {
  port: number
  isStalled: boolean
  cut(): void
  close(): void
}

async function networkTo(target: URL): Promise<Network> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => void (network.isStalled || to.write(bytes)))
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const network: Network = {
    port: (server.address() as AddressInfo).port,
    isStalled: false,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      network.cut()
      server.close()
    },
  }
  return network
}

describe.skipIf(!has)(
  `PostgreSQL behind a bad network${has ? '' : ' (skipped: install the package postgresql)'}`,
  () => {
    let server: { url: string; remove(): Promise<void> }
    let network: Network
    let database: Database
    let states: StorageState[]

    beforeEach(async () => {
      server = await newPostgresDatabase()
      network = await networkTo(new URL(server.url))
      const url = new URL(server.url)
      url.port = String(network.port)
      states = []
      database = await openPostgres(url.href, (state) => states.push(state), LIMITS)
      await database.write((db) => sql`create table counted (n int)`.execute(db))
    })
    afterEach(async () => {
      await database.close()
      network.close()
      await server.remove()
    })

    const count = async () => {
      const { rows } = await sql<{ n: number }>`select count(*) as n from counted`.execute(database.reads)
      return rows[0]?.n
    }
    const insert = (between?: () => void) =>
      database.write(async (db) => {
        between?.()
        await sql`insert into counted values (1)`.execute(db)
      })

    it('fails calls within the limit while the network is silent, and succeeds when it is back', async () => {
      network.isStalled = true
      await expect(count()).rejects.toThrow(DatabaseUnavailable)
      await expect(insert()).rejects.toThrow(DatabaseUnavailable)
      network.isStalled = false
      await insert()
      expect(await count()).toBe(1)
      expect(states).toEqual(['away', 'available'])
    })

    it('runs a transaction again whose connection is cut before its commit, and stores it once', async () => {
      let attempts = 0
      await insert(() => {
        if (attempts++ === 0) network.cut()
      })
      expect(attempts).toBe(2)
      expect(await count()).toBe(1)
    })

    it('says that the outcome is unknown if the answer to the commit is lost, and does not run it again', async () => {
      let attempts = 0
      const lost = database.write(async (db) => {
        attempts++
        await sql`insert into counted values (1)`.execute(db)
        // From here on nothing gets through: COMMIT is sent and not answered.
        network.isStalled = true
      })
      await expect(lost).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: true })
      network.isStalled = false
      expect(attempts).toBe(1)
      expect(await count()).toBe(0)
    })

    it('gives up after three attempts if every connection is cut', async () => {
      let attempts = 0
      const lost = insert(() => {
        attempts++
        network.cut()
      })
      await expect(lost).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: false })
      expect(attempts).toBe(3)
      expect(await count()).toBe(0)
    })
  },
)
