// Installs and builds what is missing, and nothing when nothing changed. Plain JavaScript: it runs on a fresh clone.
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
  'client',
  'simulators',
  'bin',
  'verification',
  'bench',
]
const BUILD_INFO = ['.server.tsbuildinfo', '.browser.tsbuildinfo']
const CONFIGS = ['package-lock.json', 'tsconfig.json', 'tsconfig.browser.json']

/** Output of a failed command that is shown, characters. */
const OUTPUT_SHOWN = 200_000
/** Between two lines of progress, ms: a line on a terminal is rewritten, a log gets a new one. */
const PROGRESS_MS = process.stderr.isTTY ? 1_000 : 15_000

/** A command that ended with another exit code than 0; its output was shown. */
class CommandFailed extends Error {}

/**
 * Runs a command and shows what is being done, for how many seconds, and how far it is. Shows the command's output if it
 * fails, or afterwards if it says something.
 */
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

/** Packages of the lock file that are installed by now: `214 of 331 packages, `. */
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

/** The stamp of the last time that this was done, or '' */
function stamp(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

async function install() {
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
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    await run('installing packages', npm, args, { progress: packagesInstalled })
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
  // The compiler trusts its own notes about what it wrote; without them it writes everything.
  if (!hasAllOutputs) for (const config of BUILD_INFO) rmSync(at('dist', config), { force: true })
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc')
  await run('building', process.execPath, [tsc, '-p', 'tsconfig.json'])
  await run('building the pages', process.execPath, [tsc, '-p', 'tsconfig.browser.json'])
  await run('describing the API', process.execPath, [at('dist', 'bin', 'write-openapi.js')])
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
    await run('fitting SQLite to this Node.js', npm, ['rebuild', 'better-sqlite3', '--loglevel=error'])
  }
  const { mayAbort } = await import(pathToFileURL(at('dist', 'bin', 'native-sqlite.js')).href)
  // With the compiler of Windows there is no way to do so; people there have prebuilt ones.
  if (process.platform !== 'win32' && mayAbort(readFileSync(addon))) {
    // From where the compiler runs: a path from the root may have spaces in it.
    const CXXFLAGS = `${process.env.CXXFLAGS ?? ''} -include ../../../bin/native/object-wrap.h`.trim()
    const why = 'building SQLite again, as the headers of this Node.js make it abort'
    await run(why, npm, ['run', '--silent', 'build-release'], {
      cwd: at('node_modules', 'better-sqlite3'),
      env: { ...process.env, CXXFLAGS },
    })
  }
  writeFileSync(file, fits())
}

try {
  if (!process.argv.includes('--build-only')) await install()
  if (!process.argv.includes('--install-only')) {
    await build()
    await fitSqlite()
  }
} catch (error) {
  if (!(error instanceof CommandFailed)) throw error
  process.exit(1)
}
