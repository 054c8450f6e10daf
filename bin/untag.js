#!/usr/bin/env -S node --max-semi-space-size=4
// A young generation of 4 MB instead of 16 MB saves a fifth of the memory at the same speed (figure `memory` of
// test/bench/). This file is plain JavaScript, so that it works before the build.
import { existsSync, readFileSync } from 'node:fs'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `untag needs Node.js 20.19 or newer, and this is ${process.versions.node}: install a newer version\n`,
  )
  process.exit(1)
}
/** Minimum number of open files and sockets for a cloud or an agent. Loading the modules takes more than 100. */
const FILES_NEEDED = 256
const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
const fileLimit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? FILES_NEEDED)
if (fileLimit < FILES_NEEDED) {
  process.stderr.write(
    `this process may open ${fileLimit} files at once and needs ${FILES_NEEDED}: raise the limit with "ulimit -n 4096", or LimitNOFILE= of its systemd unit\n`,
  )
  process.exit(1)
}
const built = new URL('../dist/bin/main.js', import.meta.url)
if (!existsSync(built)) {
  const [first = ''] = process.argv.slice(2)
  if (first !== 'help' && !process.argv.some((arg) => arg === '--help' || arg === '-h')) {
    process.stderr.write('untag is not built yet: run "npm start", or "npm ci" and "npm run build"\n')
    process.exit(1)
  }
  process.stdout.write(`untag decides, at the shop door and at the till, whether a security tag may come off.

This checkout is not built yet, and its commands and options are listed after the build:

  npm start                      Build everything, and run cloud, agent and simulated devices with sandbox data (untag start)
  npm start -- --port 8081       The same, with the API on another port. Further ports: --mqtt-port, --edge-port
  npm ci && npm run build        Build only. Then node bin/untag.js --help lists all commands

docs/guides/quick-start.md begins with npm start.
`)
  process.exit(0)
}
// New files contain keys, PIN verifiers and tokens, so only their owner may read them.
process.umask(0o077)
const { main } = await import(built.href)
const code = await main(process.argv.slice(2))
if (code !== undefined) process.exitCode = code
