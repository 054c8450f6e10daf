import Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { sql } from 'kysely'
import { afterEach, expect, it } from 'vitest'
import type { Db } from '../../../cloud/persistence/database.ts'
import { KeptReads } from '../../../cloud/persistence/kept-reads.ts'
import { newDatabase, type TestDatabase } from '../../support/databases.ts'

const opened: TestDatabase[] = []
afterEach(async () => {
  for (const db of opened.splice(0)) {
    await db.database.close()
    await db.remove()
  }
})

async function open(): Promise<TestDatabase> {
  const db = await newDatabase('sqlite')
  opened.push(db)
  return db
}

const NAMES = ['a', 'b'] as const
const valueOf = async (db: Db, name: string) =>
  (await db.selectFrom('installation').select('value').where('name', '=', name).executeTakeFirst())?.value
const set = (db: Db, name: string, value: string) =>
  db
    .insertInto('installation')
    .values({ name, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()

/** Steps of a transaction, or of another process. */
const change = fc.record({
  who: fc.constantFrom('commits', 'fails', 'other process'),
  writes: fc.array(fc.record({ name: fc.constantFrom(...NAMES), isUndone: fc.boolean() }), { maxLength: 3 }),
})

it('returns what the file contains, whoever commits or rolls back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
      const { database, location, again } = await open()
      const other = await again()
      const file = new Sqlite((location as { file: string }).file)
      const stored = (name: string) =>
        file.prepare('SELECT value FROM installation WHERE name = ?').pluck().get(name) as string | undefined
      let made = 0
      for (const { who, writes } of changes) {
        const target = who === 'other process' ? other : database
        const expected = new Map(NAMES.map((name) => [name, stored(name)]))
        const work = target.write(async (tx) => {
          for (const name of NAMES) expect(await valueOf(tx, name)).toBe(expected.get(name))
          for (const { name, isUndone } of writes) {
            const value = String(++made)
            await sql`SAVEPOINT part`.execute(tx)
            await set(tx, name, value)
            expect(await valueOf(tx, name)).toBe(value)
            if (isUndone) await sql`ROLLBACK TO SAVEPOINT part`.execute(tx)
            else expected.set(name, value)
            await sql`RELEASE SAVEPOINT part`.execute(tx)
            expect(await valueOf(tx, name)).toBe(expected.get(name))
            expect(await valueOf(database.reads, name)).toBe(stored(name))
          }
          if (who === 'fails') throw new Error('no')
        })
        await work.catch((error: Error) => expect(error.message).toBe('no'))
        for (const name of NAMES) expect(await valueOf(database.reads, name)).toBe(stored(name))
      }
      file.close()
      await other.close()
    }),
    { numRuns: 25 },
  )
})

it('gives each caller its own rows', async () => {
  const { database } = await open()
  await database.write((tx) => set(tx, 'a', '1'))
  const read = () => database.reads.selectFrom('installation').selectAll().where('name', '=', 'a').execute()
  const [first] = await read()
  first!.value = 'changed'
  expect(await read()).toEqual([{ name: 'a', value: '1' }])
})

/** A database with these tables, and a function that counts how often a statement reads. */
function keptFor(tables: string): { kept: KeptReads; count(text: string): { reads(): number; run(): void } } {
  const db = new Sqlite(':memory:')
  db.pragma('foreign_keys = ON')
  db.exec(tables)
  const kept = new KeptReads(db)
  return {
    kept,
    count(text) {
      const statement = db.prepare(text)
      let reads = 0
      const counted = { all: () => (reads++, []) } as unknown as typeof statement
      const read = kept.reading.reader(text, counted)
      const note = kept.writing.noter(text, statement)
      return {
        reads: () => reads,
        run: () => {
          if (statement.readonly) return void read([])
          note?.()
          kept.commit()
        },
      }
    },
  }
}

it('reads again only after a change of a named table, or of a table that depends on it', () => {
  const { count } = keptFor(`
    CREATE TABLE store (id PRIMARY KEY);
    CREATE TABLE chain (id PRIMARY KEY);
    CREATE TABLE region (id PRIMARY KEY REFERENCES chain (id) ON DELETE CASCADE);
    CREATE TABLE device (id PRIMARY KEY REFERENCES region (id) ON DELETE CASCADE);
    CREATE TABLE purchase (id PRIMARY KEY);
    CREATE TRIGGER sold AFTER INSERT ON purchase BEGIN DELETE FROM region; END;`)
  const stores = count('SELECT * FROM store')
  const devices = count('SELECT * FROM device')
  const purchases = count('SELECT * FROM purchase')
  const all = [stores, devices, purchases]
  const counts = () => all.map((each) => each.reads())
  const readAll = () => all.forEach((each) => each.run())
  readAll()
  readAll()
  expect(counts()).toEqual([1, 1, 2])
  count('INSERT INTO Store VALUES (1)').run()
  readAll()
  expect(counts()).toEqual([2, 1, 3])
  count('DELETE FROM chain').run()
  readAll()
  expect(counts()).toEqual([2, 2, 4])
  count('INSERT INTO purchase VALUES (1)').run()
  readAll()
  expect(counts()).toEqual([2, 3, 5])
})
