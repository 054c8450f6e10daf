import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { serverUser, startPostgres, type PostgresPlace } from '../../verification/kills/postgres-server.ts'
import { answerBench } from '../child.ts'

/** Request to create a new database. The response is the URL of the database. */
export interface ServerQuestion {
  kind: 'database'
  name: string
}

/** Runs the PostgreSQL server in a separate process, which also stops if the figure is killed. */
const [folder = ''] = process.argv.slice(2)
const server = await startPostgres(placeIn(folder))
if (!server) throw new Error('there is no PostgreSQL: install the package postgresql')
const { url, stop } = server

/**
 * Chooses a folder beside the figure's data, so that the server uses the same disk. If the bench runs as root, the
 * server runs as another user, which may have no access to that folder. In this case, the server uses the system's
 * temporary folder.
 */
function placeIn(parent: string): PostgresPlace {
  if (serverUser() !== undefined) return {}
  const dir = join(parent, 'server')
  mkdirSync(dir, { recursive: true })
  return { dir }
}

async function newDatabase(name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return new URL(`/${name}`, url).href
}

answerBench((question) => newDatabase((question as ServerQuestion).name), stop)
