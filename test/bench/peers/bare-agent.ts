import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

/**
 * The least that a program at a lane costs: Node.js with an HTTP server. It stores the body of each request in a file
 * and flushes it to disk before it answers. Argument: folder of the file. Sends `{ port }` to its parent.
 */
const file = openSync(join(process.argv[2] ?? '', 'bare-agent.log'), 'a')

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    writeSync(file, Buffer.concat([...chunks, Buffer.from('\n')]))
    fdatasyncSync(file)
    response.end('{}')
  })
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
process.on('disconnect', () => process.exit(0))
