// Installs packages and builds untag, as far as something changed. Plain JavaScript, because it runs on a fresh clone.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...parts) => join(root, ...parts)
const MODULES = [
  'policy',
  'device-drivers',
  'edge-agent',
  'cloud',
  join('clients', 'typescript'),
  'simulators',
  'host',
  'bin',
  'scripts',
  'test/verification',
  'test/bench',
]
const BUILD_INFO = ['.server.tsbuildinfo', '.browser.tsbuildinfo']
const CONFIGS = ['package-lock.json', 'tsconfig.json', 'tsconfig.browser.json']

/** Maximum length of the printed output of a command, characters. */
const OUTPUT_SHOWN = 200_000
/** Interval of progress reports, ms. A terminal rewrites its line; a log gets a new line. */
const PROGRESS_MS = process.stderr.isTTY ? 1_000 : 15_000

/** A command ended with an exit code other than 0. Its output was already printed. */
class CommandFailed extends Error {}

/** Runs a command and shows its name, the elapsed seconds and its progress. Prints the command's output at the end. */
async function run(what, command, args, { cwd = root, env = process.env, progress = () => '' } = {}) {
  const began = Date.now()
  const line = () => `${what} … ${progress()}${Math.round((Date.now() - began) / 1_000)} s`
  const show = () => process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${line()}` : `${line()}\n`)
  if (process.stderr.isTTY) show()
  else process.stderr.write(`${what} …\n`)
  const ticker = setInterval(show, PROGRESS_MS)
  let output = ''
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output = (output + chunk.toString()).slice(-OUTPUT_SHOWN)))
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve)).finally(() =>
    clearInterval(ticker),
  )
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line()}\n`)
  if (output.trim() !== '') process.stderr.write(output)
  if (code !== 0) throw new CommandFailed(`${command} ended with ${code}`)
}

/** Progress of the installation: `214 of 331 packages, `. */
function packagesInstalled() {
  const { packages } = JSON.parse(readFileSync(at('package-lock.json'), 'utf8'))
  const wanted = Object.keys(packages).filter(
    (path) => /^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path) && !packages[path].optional,
  )
  const installed = wanted.filter((path) => existsSync(at(path, 'package.json'))).length
  return installed < wanted.length
    ? `${installed} of ${wanted.length} packages, `
    : 'compiling native parts takes some minutes, '
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

function hashOf(texts) {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest('hex')
}

/** Contents of a stamp file, which describes the last completed step; '' if the file is missing. */
function stamp(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

async function install() {
  const lock = hashOf([readFileSync(at('package-lock.json'), 'utf8'), process.version])
  const file = at('node_modules', '.untag-installed')
  if (stamp(file) === lock) return
  // Accepts an earlier `npm ci` that the developer ran.
  const isInstalled =
    existsSync(at('node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node')) &&
    existsSync(at('node_modules', '.package-lock.json'))
  const isNewer =
    isInstalled &&
    statSync(at('node_modules', '.package-lock.json')).mtimeMs >= statSync(at('package-lock.json')).mtimeMs
  if (!isNewer) {
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    await run('installing packages', npm, args, { progress: packagesInstalled, env: compilerEnvironment() })
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

async function build() {
  const files = [...MODULES.flatMap((module) => sources(at(module))), ...CONFIGS.map((c) => at(c))]
    .filter((f) => existsSync(f))
    .sort()
  const current = hashOf(files.flatMap((f) => [f.slice(root.length), readFileSync(f)]))
  const file = at('dist', '.built')
  if (stamp(file) === current) return
  const hasAllOutputs = removeOrphans()
  // With its build info, the compiler does not write missing outputs again. Without it, the compiler writes all.
  if (!hasAllOutputs) for (const config of BUILD_INFO) rmSync(at('dist', config), { force: true })
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc')
  await run('building', process.execPath, [tsc, '-p', 'tsconfig.json'])
  await run('building the pages', process.execPath, [tsc, '-p', 'tsconfig.browser.json'])
  await run('describing the API', process.execPath, [at('dist', 'scripts', 'write-openapi.js')])
  writeFileSync(file, current)
}

/**
 * Environment in which better-sqlite3 compiles a native part that never aborts (host/native-sqlite.ts). Not on Windows:
 * its compiler has no `-include`, and its prebuilt binaries are not affected.
 */
function compilerEnvironment() {
  if (process.platform === 'win32') return process.env
  const { CXXFLAGS = '', CPLUS_INCLUDE_PATH } = process.env
  return {
    ...process.env,
    // The name only, because the path may contain spaces.
    CXXFLAGS: `${CXXFLAGS} -include object-wrap.h`.trim(),
    CPLUS_INCLUDE_PATH: [at('scripts', 'native'), CPLUS_INCLUDE_PATH].filter(Boolean).join(':'),
  }
}

/** Compiles the native part of better-sqlite3 in `folder` with the headers of this Node.js. */
async function compileSqlite(folder, why) {
  await run(why, npm, ['run', '--silent', 'build-release'], {
    cwd: join(folder, 'node_modules', 'better-sqlite3'),
    env: compilerEnvironment(),
  })
}

/** Makes the native part of SQLite fit this Node.js, and replaces one that may abort (host/native-sqlite.ts). */
async function fitSqlite() {
  const addon = at('node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node')
  const fits = () => `${process.version} ${existsSync(addon) ? statSync(addon).mtimeMs : 'missing'}`
  const file = at('node_modules', '.untag-sqlite')
  if (stamp(file) === fits()) return
  const loads =
    spawnSync(process.execPath, ['-e', `new (require('better-sqlite3'))(':memory:')`], { cwd: root, stdio: 'ignore' })
      .status === 0
  const env = compilerEnvironment()
  if (!loads)
    await run('fitting SQLite to this Node.js', npm, ['rebuild', 'better-sqlite3', '--loglevel=error'], { env })
  const { mayAbort } = await import(pathToFileURL(at('dist', 'host', 'native-sqlite.js')).href)
  if (process.platform !== 'win32' && mayAbort(readFileSync(addon)))
    await compileSqlite(root, 'building SQLite again, as the headers of this Node.js make it abort')
  writeFileSync(file, fits())
}

/** Folder whose better-sqlite3 is compiled, without a build of the checkout (packaging/stage). */
const other = process.argv[2] === '--compile-sqlite' ? process.argv[3] : undefined
try {
  if (other !== undefined) await compileSqlite(other, `compiling SQLite for Node.js ${process.versions.node}`)
  else {
    if (!process.argv.includes('--build-only')) await install()
    if (!process.argv.includes('--install-only')) {
      // The compiler of the build uses one core only.
      const checked = process.argv.includes('--check')
        ? run('checking types, rules and format', npm, ['run', '--silent', 'check'])
        : undefined
      const results = await Promise.allSettled([build(), checked])
      for (const result of results) if (result.status === 'rejected') throw result.reason
      await fitSqlite()
    }
  }
} catch (error) {
  if (!(error instanceof CommandFailed)) throw error
  process.exit(1)
}
