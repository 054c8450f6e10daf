import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { listen } from '../../../../host/http-server.ts'
import { unreadAnswers } from '../../../../host/request-guard.ts'

it('cuts the oldest answer of the network with the most, and no answer of another one', () => {
  const cuts: string[] = []
  const unread = unreadAnswers({ ofOne: 100, total: 250 })
  const add = (network: string, bytes: number, name: string) =>
    unread.add({ network, bytes, cut: () => void cuts.push(name) })
  add('a', 60, 'a1')
  const end = add('a', 40, 'a2')
  add('a', 30, 'a3')
  expect(cuts).toEqual(['a1'])
  end()
  end()
  add('b', 90, 'b1')
  add('c', 80, 'c1')
  expect(cuts).toEqual(['a1'])
  add('d', 60, 'd1')
  expect(cuts).toEqual(['a1', 'b1'])
  add('a', 101, 'a4')
  expect(cuts).toEqual(['a1', 'b1', 'a3', 'a4'])
})

it('does not keep the answers of clients that read none', async () => {
  const lines: string[] = []
  const warn = (fields: object) => void lines.push(JSON.stringify(fields))
  const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port', warn })
  const body = 'x'.repeat(20 * 1024 * 1024)
  server.serve({ fetch: () => new Response(body) })
  const clients: Socket[] = []
  for (let n = 0; n < 12; n++) {
    const client = connect(server.port, '127.0.0.1')
    client.once('error', () => undefined)
    await once(client, 'connect')
    client.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
    clients.push(client)
  }
  // 12 answers need 240 MB; at most 128 MB of them stay.
  await expect.poll(() => lines.some((line) => line.includes('too many answers are not read'))).toBe(true)
  const answer = await fetch(`http://127.0.0.1:${server.port}/`)
  expect((await answer.text()).length).toBe(body.length)
  for (const client of clients) client.destroy()
  await server.close()
})
