// @module-tag extended
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { whyNoPostgres, startPostgres, type PostgresServer } from '../verification/kills/postgres-server.ts'
import { ensureBuilt } from '../support/built.ts'
import { cloudUnderLoad, eanOf, type Answer, type CloudUnderLoad } from '../support/cloud-under-load.ts'
import { eventually } from '../support/journey.ts'
import { NO_SMALL_DISK, smallDisk, type SmallDisk } from '../support/small-disk.ts'

const DISK_FULL = { status: 503, retryAfter: '30', body: { code: 'unavailable', reason: 'disk_full' } }
/** Maximum number of inserts on a full disk, because the last pages of the files have some room. */
const INSERTS = 3_000

describe.skipIf(NO_SMALL_DISK)(
  `a disk that is really full${NO_SMALL_DISK ? ` (skipped: ${NO_SMALL_DISK})` : ''}`,
  () => {
    let disk: SmallDisk
    let load: CloudUnderLoad
    let next: number

    beforeAll(ensureBuilt)
    beforeEach(() => {
      next = 0
    })
    afterEach(async () => {
      await load?.stop()
      disk.remove()
    })

    /** Inserts products until the cloud rejects one. */
    async function insertUntilRefused(): Promise<{ ean: string; answer: Answer }> {
      for (let i = 0; i < INSERTS; i++) {
        const ean = eanOf(900, next++)
        const answer = await load.insert(ean)
        if (answer.status !== 200) return { ean, answer }
      }
      throw new Error(`${INSERTS} inserts found room on a full disk`)
    }
    const logged = (text: string) => load.process.stderr().split(text).length - 1

    /** Fills the disk, checks the responses, and makes room again. */
    async function fillAndMakeRoom(whileFull: (refused: string) => Promise<void>): Promise<void> {
      await load.confirmed(20)
      await load.endLoad()
      disk.fill()
      const { ean, answer } = await insertUntilRefused()
      expect(answer).toMatchObject(DISK_FULL)
      await whileFull(ean)
      expect(await load.call('fetchStores', {})).toMatchObject({ status: 200 })
      expect(await load.page('/healthz')).toEqual({ status: 200, body: { ok: true } })
      disk.makeRoom()
      expect(await load.insert(ean)).toMatchObject({ status: 200 })
      expect(await load.insert(eanOf(901, next))).toMatchObject({ status: 200 })
      expect(logged('the disk is full')).toBeGreaterThan(0)
      expect(logged('the database accepts writes again')).toBe(logged('the disk is full'))
      expect(load.process.child.exitCode).toBe(null)
      // A repeated request gets its stored response.
      for (const known of load.stored.slice(-20)) expect(await load.insert(known)).toMatchObject({ status: 200 })
    }

    it('lets a SQLite cloud reject writes with 503, shown on /readyz, until there is room', async () => {
      disk = smallDisk(48)
      load = await cloudUnderLoad({ data: join(disk.folder, 'cloud'), callers: 2 })
      await fillAndMakeRoom(async (refused) => {
        for (let i = 0; i < 5; i++) expect(await load.insert(refused)).toMatchObject(DISK_FULL)
        expect(await load.page('/readyz')).toMatchObject({
          status: 503,
          body: { unready: [{ check: 'disk', reason: expect.stringContaining('ENOSPC') as string }] },
        })
      })
      expect(logged('the disk is full')).toBe(1)
      await eventually('ready', async () => (await load.page('/readyz')).status === 200)
    })

    it.skipIf(whyNoPostgres())('of the PostgreSQL server lets the cloud reject writes with 503', async () => {
      disk = smallDisk(192)
      const dir = join(disk.folder, 'server')
      mkdirSync(dir)
      const server = (await startPostgres({ dir })) as PostgresServer
      try {
        load = await cloudUnderLoad({ databaseUrl: server.url, callers: 2 })
        await fillAndMakeRoom(async () => {
          // The last pages of the tables have some room.
          const answers = [await load.insert(eanOf(902, 0)), await load.insert(eanOf(902, 1))]
          for (const answer of answers) if (answer.status !== 200) expect(answer).toMatchObject(DISK_FULL)
        })
      } finally {
        await load?.stop()
        await server.stop()
      }
    })
  },
)
