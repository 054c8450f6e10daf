// Installs and builds what is missing, and nothing when nothing changed. Plain JavaScript: it runs on a fresh clone.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => join(root, ...parts)
const MODULES = ['policy', 'device-drivers', 'edge-agent', 'cloud', 'client', 'simulators', 'bin', 'bench']
const BUILD_INFO = ['.server.tsbuildinfo', '.browser.tsbuildinfo']
const CONFIGS = ['package-lock.json', 'tsconfig.json', 'tsconfig.browser.json']

function run(command, args) {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
}

/** As `run`; what a compiler says is shown when it fails. */
function runQuietly(command, args, { cwd = root, env = process.env } = {}) {
  try {
    execFileSync(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 26 })
  } catch (error) {
    console.error(`${error.stdout ?? ''}${error.stderr ?? ''}`)
    throw error
  }
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function hashOf(texts) {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest('hex')
}

/** The stamp of the last time that this was done, or '' */
function stamp(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

function install() {
  const lock = hashOf([readFileSync(at('package-lock.json'), 'utf8'), process.version])
  const file = at('node_modules', '.untag-installed')
  if (stamp(file) === lock) return
  // Whoever ran npm ci by hand has installed it too.
  const isInstalled =
    existsSync(at('node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node')) &&
    existsSync(at('node_modules', '.package-lock.json'))
  const isNewer =
    isInstalled &&
    statSync(at('node_modules', '.package-lock.json')).mtimeMs >= statSync(at('package-lock.json')).mtimeMs
  if (!isNewer) {
    console.error('installing packages (the first time takes a few minutes) …')
    run(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
  }
  writeFileSync(file, lock)
}

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    return /\.(ts|tsx|js|json|css)$/.test(entry.name) ? [path] : []
  })
}

/** Deletes outputs whose source is gone. Returns false if an output is missing. */
function removeOrphans() {
  if (!existsSync(at('dist'))) return false
  const expected = new Set(
    MODULES.flatMap((module) => sources(at(module)))
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join('dist', file.slice(root.length)).replace(/\.tsx?$/, '')),
  )
  const present = new Set()
  for (const entry of readdirSync(at('dist'), { recursive: true, withFileTypes: true })) {
    const match = /^(.+?)(\.js\.map|\.d\.ts|\.js|\.jsx)$/.exec(entry.name)
    if (!entry.isFile() || match === null) continue
    const path = join(entry.parentPath, match[1]).slice(root.length)
    if (!expected.has(path)) rmSync(join(entry.parentPath, entry.name))
    else if (match[2] === '.js' || match[2] === '.jsx') present.add(path)
  }
  return present.size === expected.size
}

function build() {
  const files = [...MODULES.flatMap((module) => sources(at(module))), ...CONFIGS.map((c) => at(c))]
    .filter((f) => existsSync(f))
    .sort()
  const current = hashOf(files.flatMap((f) => [f.slice(root.length), readFileSync(f)]))
  const file = at('dist', '.built')
  if (stamp(file) === current) return
  console.error('building …')
  const hasAllOutputs = removeOrphans()
  // The compiler trusts its own notes about what it wrote; without them it writes everything.
  if (!hasAllOutputs) for (const config of BUILD_INFO) rmSync(at('dist', config), { force: true })
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc')
  run(process.execPath, [tsc, '-p', 'tsconfig.json'])
  run(process.execPath, [tsc, '-p', 'tsconfig.browser.json'])
  run(process.execPath, [at('dist', 'bin', 'write-openapi.js')])
  writeFileSync(file, current)
}

/** SQLite's native part must be one of this Node.js, and one that does not abort (bin/native-sqlite.ts). */
async function fitSqlite() {
  const addon = at('node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node')
  const fits = () => `${process.version} ${existsSync(addon) ? statSync(addon).mtimeMs : 'missing'}`
  const file = at('node_modules', '.untag-sqlite')
  if (stamp(file) === fits()) return
  const loads =
    spawnSync(process.execPath, ['-e', `new (require('better-sqlite3'))(':memory:')`], { cwd: root, stdio: 'ignore' })
      .status === 0
  if (!loads) {
    console.error('fitting SQLite to this Node.js …')
    runQuietly(npm, ['rebuild', 'better-sqlite3', '--loglevel=error'])
  }
  const { mayAbort } = await import(pathToFileURL(at('dist', 'bin', 'native-sqlite.js')).href)
  // With the compiler of Windows there is no way to do so; people there have prebuilt ones.
  if (process.platform !== 'win32' && mayAbort(readFileSync(addon))) {
    console.error('building SQLite again, for the headers of this Node.js make it abort (takes a minute or two) …')
    // From where the compiler runs: a path from the root may have spaces in it.
    const CXXFLAGS = `${process.env.CXXFLAGS ?? ''} -include ../../../bin/native/object-wrap.h`.trim()
    runQuietly(npm, ['run', '--silent', 'build-release'], {
      cwd: at('node_modules', 'better-sqlite3'),
      env: { ...process.env, CXXFLAGS },
    })
  }
  writeFileSync(file, fits())
}

try {
  if (!process.argv.includes('--build-only')) install()
  if (!process.argv.includes('--install-only')) {
    build()
    await fitSqlite()
  }
} catch (error) {
  if (error.status === undefined) throw error
  process.exit(1)
}
