import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CORES, startProgram, type Program } from '../child.ts'
import { benchProduct } from '../catalogue/products.ts'

/**
 *   test/bench/peers/vendure ──copied──▶ var/peers/vendure ── npm install ── seed.js ──▶ seeded.db ──copied──▶ the figure's folder
 *
 * Vendure is a shop system for comparison, not a dependency of untag. The option `--vendure` installs Vendure into
 * `var/`, which is neither built nor committed. `package.json` has exact versions, and `before` in `.npmrc` fixes the
 * versions of all other packages.
 */
const SOURCE = resolve('test/bench/peers/vendure')
const HOME = resolve('var/peers/vendure')
const MANIFEST = ['package.json', '.npmrc'] as const
const PROGRAMS = ['config.js', 'seed.js', 'server.js'] as const

/** Starts Vendure with the first `products` of `benchProduct`. */
export async function startVendure(folder: string, products: number, note: (text: string) => void): Promise<Program> {
  install(note)
  const database = join(folder, 'vendure.db')
  copyFileSync(seededDatabase(products, note), database)
  return startProgram(pathToFileURL(join(HOME, 'server.js')).href, CORES.server, [database])
}

function install(note: (text: string) => void): void {
  mkdirSync(HOME, { recursive: true })
  for (const name of [...MANIFEST, ...PROGRAMS]) copyFileSync(join(SOURCE, name), join(HOME, name))
  const wanted = hashOf([...MANIFEST.map((name) => readFileSync(join(HOME, name), 'utf8')), process.version])
  const stamp = join(HOME, '.installed')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  note(
    'Vendure is being installed into var/peers/vendure: about 170 MB, some minutes; delete the folder when you are done',
  )
  run(process.platform === 'win32' ? 'npm.cmd' : 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'])
  writeFileSync(stamp, wanted)
}

/** Returns the database of a shop with these products, created on the first call. */
function seededDatabase(count: number, note: (text: string) => void): string {
  const database = join(HOME, `seeded-${count}.db`)
  const products = JSON.stringify(Array.from({ length: count }, (_, i) => benchProduct(i)))
  const wanted = hashOf([products, ...[...MANIFEST, ...PROGRAMS].map((name) => readFileSync(join(HOME, name), 'utf8'))])
  const stamp = `${database}.of`
  if (existsSync(database) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return database
  note(`Vendure gets ${count} products`)
  for (const end of ['', '-wal', '-shm']) rmSync(`${database}${end}`, { force: true })
  const list = join(HOME, 'products.json')
  writeFileSync(list, products)
  run(process.execPath, ['seed.js', database, list])
  writeFileSync(stamp, wanted)
  return database
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, {
    cwd: HOME,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed in ${HOME}`)
}

function hashOf(texts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest('hex')
}
