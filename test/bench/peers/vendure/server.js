// node server.js DATABASE: serves the shop API of Vendure and answers requests of the bench (bench/child.ts).
const { readFileSync } = require('node:fs')
const { configOf } = require('./config.js')
const { bootstrap } = require('@vendure/core')

const [database] = process.argv.slice(2)

function memoryOf() {
  const rss = process.memoryUsage.rss() / 1e6
  try {
    const kB = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    return { rss, peak: kB === undefined ? rss : (Number(kB) * 1024) / 1e6 }
  } catch {
    return { rss, peak: rss }
  }
}

async function main() {
  const app = await bootstrap(configOf({ database, port: 0, synchronize: false }))
  const { port } = app.getHttpServer().address()
  const answer = { prepare: () => ({ port }), cpu: () => process.cpuUsage(), memory: memoryOf }
  process.on('message', ({ kind }) => process.send({ value: answer[kind]() }))
  process.on('disconnect', () => process.exit(0))
  process.send('ready')
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
