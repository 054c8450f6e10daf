import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Hono } from 'hono'
import { listen } from '../../../../host/http-server.ts'

const CONNECTIONS = 60
const BEGUN_IN_TURN = 8

it('requests of many busy connections begin in several turns, each of which accepts a connection', async () => {
  let turn = 0
  let isOver = false
  const count = () => void (isOver || (turn++, setImmediate(count)))
  const begun = new Map<number, number>()
  const app = new Hono().get('/', (c) => {
    begun.set(turn, (begun.get(turn) ?? 0) + 1)
    return c.text('here')
  })
  const server = await listen({ host: '127.0.0.1', port: 0, flag: '--port' })
  server.serve(app)
  const sockets: Socket[] = []
  for (let n = 0; n < CONNECTIONS; n++) {
    const socket = connect(server.port, '127.0.0.1')
    await once(socket, 'connect')
    sockets.push(socket)
  }
  count()
  const answers = sockets.map(async (socket) => {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    return chunk.toString().split('\r\n')[0]
  })
  for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 200 OK']))
  isOver = true
  for (const socket of sockets) socket.destroy()
  await server.close()
  expect([...begun.values()].reduce((sum, n) => sum + n, 0)).toBe(CONNECTIONS)
  expect(Math.max(...begun.values())).toBeLessThanOrEqual(BEGUN_IN_TURN)
})
