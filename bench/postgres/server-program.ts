import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../../bin/prove/postgres-server.ts'
import { answerBench } from '../child.ts'

/** A new database of the server. The answer is its URL. */
export interface ServerQuestion {
  kind: 'database'
  name: string
}

/** The PostgreSQL server, in a process of its own: it is stopped also if the figure is killed. */
const [folder = ''] = process.argv.slice(2)
const dir = join(folder, 'server')
mkdirSync(dir, { recursive: true })
const server = await startPostgres({ dir })
if (!server) throw new Error('there is no PostgreSQL: install the package postgresql')
const { url, stop } = server

async function newDatabase(name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return new URL(`/${name}`, url).href
}

answerBench((question) => newDatabase((question as ServerQuestion).name), stop)
