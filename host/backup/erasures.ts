import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { ListedErasure, LISTED_ERASURES, listErasures } from '../../cloud/sales/customers/erasures.ts'
import { isKnownDatabase, withDatabase, type DatabaseLocation } from '../known-database.ts'
import { errorText } from '../output.ts'
import { flush } from './files.ts'
import { storedBackups } from './retention.ts'

/** The list of erased customers in a backup. The master key sealed the customer ids. */
const NAME = 'erasures.json'
const List = z.array(ListedErasure).max(LISTED_ERASURES)

/** Writes a list into a folder, flushed. */
export function writeErasures(folder: string, erasures: readonly ListedErasure[]): void {
  const file = join(folder, NAME)
  writeFileSync(file, `${JSON.stringify(erasures.slice(0, LISTED_ERASURES))}\n`, { mode: 0o600 })
  flush(file)
  flush(folder)
}

/** Reads the list of a folder; empty if the folder has none. Throws if the list is damaged. */
export function readErasures(folder: string): ListedErasure[] {
  const file = join(folder, NAME)
  if (!existsSync(file)) return []
  try {
    return List.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    throw new Error(`${file} is damaged`)
  }
}

/** The list of a database of this version. */
export function databaseErasures(place: DatabaseLocation): Promise<ListedErasure[]> {
  return withDatabase({ ...place, migrations: 'require' }, ({ reads }) => listErasures(reads), true)
}

/**
 * All known erasures, newest first: of the database that a restore replaces, of all backups beside the restored one, and
 * of an interrupted restore in the folder `staging`. Calls `onUnread` for each list that cannot be read.
 */
export async function collectErasures(
  place: DatabaseLocation,
  { from, staging }: { from: string; staging: string },
  onUnread: (reason: string) => void,
): Promise<ListedErasure[]> {
  const found = new Map<string, ListedErasure>()
  const add = async (name: string, read: () => readonly ListedErasure[] | Promise<readonly ListedErasure[]>) => {
    try {
      for (const entry of await read()) found.set(entry.erasureId, entry)
    } catch (error) {
      onUnread(`the erasures of customers in ${name} were not read: ${errorText(error)}`)
    }
  }
  await add('the replaced database', async () => ((await isKnownDatabase(place)) ? databaseErasures(place) : []))
  const beside = dirname(resolve(from))
  const others = storedBackups(beside).filter(({ name, isComplete }) => isComplete && name !== basename(resolve(from)))
  for (const folder of [staging, from, ...others.map(({ name }) => join(beside, name))])
    await add(folder, () => readErasures(folder))
  return [...found.values()].sort((a, b) => (a.erasureId < b.erasureId ? 1 : -1)).slice(0, LISTED_ERASURES)
}
