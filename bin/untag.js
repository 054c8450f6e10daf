#!/usr/bin/env -S node --max-semi-space-size=4
// 4 MB for what is young instead of 16: a fifth less memory, and no slower (bench/, figure memory).
// The command. Plain JavaScript, so that it can say what is missing before anything is built.
import { existsSync, readFileSync } from 'node:fs'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`untag needs Node.js 20.19 or newer, this is ${process.versions.node}\n`)
  process.exit(1)
}
/** Files and sockets that a cloud or an agent needs at least; loading its modules takes more than a hundred. */
const FILES_NEEDED = 256
const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
const fileLimit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? FILES_NEEDED)
if (fileLimit < FILES_NEEDED) {
  process.stderr.write(
    `this process may open ${fileLimit} files at once, and needs ${FILES_NEEDED}: raise the limit with "ulimit -n 4096", or LimitNOFILE= of its systemd unit\n`,
  )
  process.exit(1)
}
const built = new URL('../dist/bin/main.js', import.meta.url)
if (!existsSync(built)) {
  process.stderr.write('untag is not built yet: run "npm start", or "npm ci" and "npm run build"\n')
  process.exit(1)
}
// What is made here has keys, verifiers of PINs and tokens in it: its owner's alone, in whatever folder.
process.umask(0o077)
const { main } = await import(built.href)
const code = await main(process.argv.slice(2))
if (code !== undefined) process.exitCode = code
