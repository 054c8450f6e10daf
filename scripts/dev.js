// Runs `untag start` and restarts it after every change of the sources. Plain JavaScript: it runs before anything is built.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const START = ['--enable-source-maps', '--max-semi-space-size=4', join(root, 'bin', 'untag.js'), 'start']
const WRITE_OPENAPI = join(root, 'dist', 'scripts', 'write-openapi.js')
/** Wait for more compiler reports before a restart, ms: both compilers report each change. */
const SETTLE_MS = 200
/** Time after which an application that does not stop is killed, ms. */
const STOP_LIMIT_MS = 10_000

const HAS_GROUPS = process.platform !== 'win32'

/** Configurations whose last compilation had no errors. */
const compiled = new Set()
let application
let restart
let isRestarting = false
let isChanged = false
let isStopping = false

/** Starts the compiler of one configuration in watch mode. */
function watch(config) {
  const compiler = spawn(process.execPath, [tsc, '-p', config, '--watch', '--preserveWatchOutput'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    // `tsc` starts a native child process. Only a signal to the process group ends both.
    detached: HAS_GROUPS,
  })
  let line = ''
  compiler.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const complete of lines) report(config, complete)
  })
  compiler.on('exit', (code) => {
    if (!isStopping) stop(code ?? 1)
  })
  return compiler
}

function report(config, line) {
  const found = /Found (\d+) errors?/.exec(line)
  if (found === null) {
    if (!/Starting (?:incremental )?compilation/.test(line) && line.trim() !== '') console.error(line)
    return
  }
  if (found[1] !== '0') {
    compiled.delete(config)
    console.error(`${config}: ${found[1]} errors; the last build goes on running`)
    return
  }
  compiled.add(config)
  if (compiled.size < compilers.length) return
  clearTimeout(restart)
  restart = setTimeout(startAgain, SETTLE_MS)
}

/** Stops the application and starts it again. A change during the restart causes one more restart. */
async function startAgain() {
  if (isRestarting) {
    isChanged = true
    return
  }
  isRestarting = true
  do {
    isChanged = false
    await end(application)
    await ended(spawn(process.execPath, [WRITE_OPENAPI], { cwd: root, stdio: 'inherit' }))
  } while (isChanged)
  isRestarting = false
  if (!isStopping) start()
}

function start() {
  console.error('starting …')
  const started = spawn(process.execPath, [...START, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  application = started
  // Key `q` ends the application with code 0, which also ends this script. After a crash, the script waits for the next
  // change.
  started.on('exit', (code, signal) => {
    if (started !== application) return
    if (code === 0) stop(0)
    else console.error(`untag start ended (${signal ?? code}); waiting for a change`)
  })
}

function ended(child) {
  return new Promise((resolve) => child.once('exit', resolve))
}

/** Resolves when the child has ended. */
function end(child) {
  if (child === application) application = undefined
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  child.kill('SIGTERM')
  return ended(child).finally(() => clearTimeout(kill))
}

async function stop(code) {
  if (isStopping) return
  isStopping = true
  for (const { pid } of compilers) if (HAS_GROUPS && pid !== undefined) process.kill(-pid)
  await Promise.all([...compilers, application].map(end))
  process.exit(code)
}

process.on('SIGINT', () => stop(0))
process.on('SIGTERM', () => stop(0))
const compilers = ['tsconfig.json', 'tsconfig.browser.json'].map(watch)
