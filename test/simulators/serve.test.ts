import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp } from '../../simulators/devices/serve.ts'
import type { TcpService } from '../../simulators/devices/serve.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

const services: TcpService[] = []
const clients: Socket[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  for (const service of services.splice(0)) await service.close()
})

interface Client {
  text(): string
  readonly closed: Promise<void>
  /** Resolves when this number of characters has arrived. */
  until(length: number): Promise<void>
}

async function service() {
  const scanner = scannerSimulator({ platform: virtualPlatform(), chunkBytes: 3 })
  let served = () => {}
  const made = await serveTcp({
    port: 0,
    serve(link) {
      const end = scanner.serve(link)
      served()
      return end
    },
  })
  services.push(made)
  async function client(): Promise<Client> {
    const isServed = new Promise<void>((resolve) => (served = resolve))
    const socket = connect(made.port, '127.0.0.1')
    clients.push(socket)
    let text = ''
    let check = () => {}
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString()
      check()
    })
    await isServed
    return {
      text: () => text,
      closed: new Promise((resolve) => socket.once('close', () => resolve())),
      until: (length) =>
        new Promise((resolve) => {
          check = () => text.length >= length && resolve()
          check()
        }),
    }
  }
  return { scanner, made, client }
}

describe('a simulated device on a TCP port', () => {
  test('sends a scan to all connected clients', async () => {
    const { scanner, client } = await service()
    const [one, two] = [await client(), await client()]
    expect(scanner.listeners).toBe(2)
    await scanner.scan('4006381333931', ']E0')
    await Promise.all([one.until(17), two.until(17)])
    expect([one.text(), two.text()]).toEqual([']E04006381333931\r', ']E04006381333931\r'])
  })

  test('breaks connections at cut, and accepts new ones', async () => {
    const { scanner, made, client } = await service()
    const one = await client()
    made.cut()
    await one.closed
    const two = await client()
    await scanner.scan('A')
    await two.until(2)
    expect(two.text()).toBe('A\r')
  })

  test('rejects a port that is in use', async () => {
    const { made } = await service()
    await expect(serveTcp({ port: made.port, serve: async () => {} })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  test('ends everything at close', async () => {
    const { made, client } = await service()
    const one = await client()
    await made.close()
    await one.closed
    expect(made.connections).toBe(0)
  })
})
