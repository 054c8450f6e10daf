import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { deadline } from '../../policy/platform.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { linkKey, linkMode, LinkSettings, openLink } from '../../device-drivers/transports/link-settings.ts'
import { memoryPair, memoryPort } from '../../device-drivers/transports/memory.ts'
import { openTcp } from '../../device-drivers/transports/socket-link.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { realPlatform } from './platform.ts'
import { concat } from './pieces.ts'
import { forEver } from './workbench.ts'

async function readAll(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return concat(parts)
}

describe('memory link', () => {
  test('carries bytes in both directions and ends in order', async () => {
    const { near, far } = memoryPair()
    await near.write(Uint8Array.of(1, 2), forEver())
    await far.write(Uint8Array.of(3), forEver())
    await near.close()
    expect(await readAll(far.bytes)).toEqual(Uint8Array.of(1, 2))
    await expect(far.write(Uint8Array.of(4), forEver())).rejects.toThrow('closed')
  })

  test('loses unread bytes when it is cut, and both ends see it', async () => {
    const { near, far, cut } = memoryPair()
    await near.write(Uint8Array.of(1), forEver())
    cut()
    await expect(readAll(far.bytes)).rejects.toMatchObject({ code: 'lost' })
    await expect(readAll(near.bytes)).rejects.toMatchObject({ code: 'lost' })
  })

  test('blocks the writer while it is full, until the reader continues or the writer aborts', async () => {
    const { near, far } = memoryPair()
    await near.write(new Uint8Array(65_536), forEver())
    const world = virtualPlatform()
    const limit = deadline(world.timers, 100)
    const blocked = near.write(Uint8Array.of(1), limit.signal)
    await Promise.all([expect(blocked).rejects.toMatchObject({ name: 'TimeoutError' }), world.advance(100)])
    const later = near.write(Uint8Array.of(2), forEver())
    const reader = far.bytes[Symbol.asyncIterator]()
    expect((await reader.next()).value).toHaveLength(65_536)
    await later
    expect((await reader.next()).value).toEqual(Uint8Array.of(2))
  })

  test('can be unplugged and plugged in', async () => {
    const port = memoryPort(() => {})
    port.unplug()
    await expect(port.open(forEver())).rejects.toMatchObject({ code: 'missing' })
    port.plug()
    await port.open(forEver())
    expect(port.opened).toBe(1)
  })
})

describe('TCP link', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) server.close()
  })
  const listen = (onSocket: (socket: Socket) => void) =>
    new Promise<number>((resolve) => {
      const server = createServer((socket) => {
        sockets.push(socket)
        socket.on('error', () => {})
        onSocket(socket)
      })
      servers.push(server)
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })

  test('carries an echo, then ends with the other side', async () => {
    const port = await listen((socket) => socket.once('data', (chunk) => socket.end(chunk)))
    const link = await openTcp('127.0.0.1', port, forEver())
    await link.write(Uint8Array.of(1, 2, 3), forEver())
    expect(await readAll(link.bytes)).toEqual(Uint8Array.of(1, 2, 3))
    await link.close()
    await link.close()
    await expect(link.write(Uint8Array.of(1), forEver())).rejects.toMatchObject({ code: 'lost' })
  })

  test('reports a reset to the reader as a fault', async () => {
    const port = await listen((socket) => socket.once('data', () => socket.resetAndDestroy()))
    const link = await openTcp('127.0.0.1', port, forEver())
    await link.write(Uint8Array.of(1), forEver())
    await expect(readAll(link.bytes)).rejects.toMatchObject({ code: 'lost' })
  })

  test('ends its reader without a fault when it is closed here', async () => {
    const port = await listen(() => {})
    const link = await openTcp('127.0.0.1', port, forEver())
    const reading = readAll(link.bytes)
    await link.close()
    expect(await reading).toHaveLength(0)
  })

  test('names address and fix if nothing listens', async () => {
    const port = await listen(() => {})
    await new Promise((resolve) => servers.pop()?.close(resolve))
    await expect(openTcp('127.0.0.1', port, forEver())).rejects.toMatchObject({
      code: 'refused',
      message: `127.0.0.1:${port}: nothing listens there; check the port and that the device is on`,
    })
  })

  test('slows a peer down that floods an unread link', async () => {
    let sent = 0
    const port = await listen((socket) => {
      const more = () => {
        while (sent < 64 * 1_048_576 && socket.write(new Uint8Array(65_536))) sent += 65_536
      }
      socket.on('drain', more)
      more()
    })
    const link = await openTcp('127.0.0.1', port, forEver())
    const reader = link.bytes[Symbol.asyncIterator]()
    await reader.next()
    const other = await openTcp('127.0.0.1', port, forEver())
    await other.close()
    expect(sent).toBeLessThan(64 * 1_048_576)
    await link.close()
  })

  test('refuses more unfinished writes than a device needs, whatever their size', async () => {
    const link = await openTcp('127.0.0.1', await listen(() => {}), forEver())
    const writes = Array.from({ length: 1_500 }, () => link.write(Uint8Array.of(1), forEver()))
    const results = await Promise.allSettled(writes)
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(1_024)
    expect(results.at(-1)).toMatchObject({ reason: { code: 'lost' } })
    await link.close()
  })

  test('ends a write by its signal if the peer reads nothing', async () => {
    const port = await listen((socket) => socket.pause())
    const link = await openTcp('127.0.0.1', port, forEver())
    const gaveUp = new AbortController()
    const written = (async () => {
      for (;;) await link.write(new Uint8Array(1_048_576), gaveUp.signal)
    })()
    const limit = deadline(realPlatform.timers, 300)
    limit.signal.addEventListener('abort', () => gaveUp.abort(new Error('enough')))
    await expect(written).rejects.toThrow()
    await link.close()
  })

  /** Writes until the transport accepts no more bytes, while the peer reads nothing. */
  async function fill(link: ByteLink): Promise<number> {
    let taken = 0
    for (;;) {
      const written = await link.write(new Uint8Array(262_144), AbortSignal.timeout(200)).then(
        () => true,
        () => false,
      )
      if (!written) return taken
      taken += 262_144
    }
  }
  const unread = async () => {
    let tell = (_socket: Socket) => {}
    const accepted = new Promise<Socket>((resolve) => (tell = resolve))
    const port = await listen((socket) => tell(socket.pause()))
    return { link: await openTcp('127.0.0.1', port, forEver()), board: await accepted }
  }
  /** Number of bytes that the peer receives when it reads again. */
  const gets = (board: Socket) =>
    new Promise<number>((resolve) => {
      let bytes = 0
      board.on('data', (chunk) => (bytes += chunk.length))
      board.once('close', () => resolve(bytes))
      board.resume()
    })

  test('never delivers unacknowledged bytes after an abort', async () => {
    const { link, board } = await unread()
    const taken = await fill(link)
    await link.close()
    expect(await gets(board)).toBeLessThan(taken)
  })

  test('never delivers them either if the reader stopped before', async () => {
    const { link, board } = await unread()
    board.write('x')
    for await (const _ of link.bytes) break
    const taken = await fill(link)
    await link.close()
    expect(await gets(board)).toBeLessThan(taken)
  })

  test('delivers the last bytes when it is closed in order', async () => {
    const { link, board } = await unread()
    const bytes = new Uint8Array(8 * 1_048_576)
    void link.write(bytes, forEver()).catch(() => {})
    const closed = link.close(forEver())
    expect(await gets(board)).toBe(bytes.length)
    await closed
  })

  test('aborts at the time limit if the other side takes nothing', async () => {
    const { link, board } = await unread()
    const taken = await fill(link)
    const limit = deadline(realPlatform.timers, 100)
    await link.close(limit.signal)
    expect(await gets(board)).toBeLessThan(taken)
  })

  test('can be aborted while it closes in order', async () => {
    const { link, board } = await unread()
    const taken = await fill(link)
    const closing = link.close(forEver())
    await link.close()
    await closing
    expect(await gets(board)).toBeLessThan(taken)
  })

  test('can be aborted while it connects', async () => {
    const aborted = AbortSignal.abort(new Error('too late'))
    await expect(openTcp('127.0.0.1', 1, aborted)).rejects.toThrow('too late')
  })
})

describe('link settings', () => {
  test.each(['10.0.0.7:502', 'board.local:1', '[fe80::1]:65535'])('accepts %s as an address', (tcp) => {
    expect(LinkSettings.safeParse({ tcp }).success).toBe(true)
  })
  test.each(['10.0.0.7', ':502', 'a:0', 'a:65536', 'a b:1', 'fe80::1', 'http://a:1'])(
    'rejects %s as an address',
    (tcp) => {
      expect(LinkSettings.safeParse({ tcp }).success).toBe(false)
    },
  )
  test('have keys and modes', () => {
    const serial = LinkSettings.parse({ serial: '/dev/x', baudRate: 9600, parity: 'even', stopBits: 2 })
    expect([linkKey(serial), linkMode(serial)]).toEqual(['serial:/dev/x', '9600 8E2'])
    expect(linkKey({ tcp: 'BOARD:502' })).toBe('tcp:board:502')
  })
  test('names the path of a missing serial port', async () => {
    const serial = LinkSettings.parse({ serial: '/dev/serial/by-id/nothing', baudRate: 9600 })
    const message = expect.stringContaining('/dev/serial/by-id/nothing')
    await expect(openLink(serial, forEver())).rejects.toMatchObject({ code: 'missing', message })
  })
})
