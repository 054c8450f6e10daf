import type { Server } from 'node:net'
import ModbusRTU from 'modbus-serial'
import { afterEach, describe, expect, test } from 'vitest'
import { LinkFault } from '../../device-drivers/transports/byte-link.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import { openTcp } from '../../device-drivers/transports/socket-link.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { realPlatform } from './platform.ts'
import { realBench } from './real-io.ts'
import { forEver, RELEASE } from './workbench.ts'

// modbus-serial is an independent implementation of Modbus.

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A relay board made from modbus-serial's TCP server; input 0 follows coil 0. */
function independentBoard(): Promise<{
  port: number
  coils: boolean[]
  writes: [number, boolean][]
  close(): Promise<void>
}> {
  const coils = Array.from({ length: 8 }, () => false)
  const writes: [number, boolean][] = []
  const vector = {
    getCoil: (at: number) => coils[at] === true,
    getDiscreteInput: (at: number) => coils[at] === true,
    setCoil: (at: number, on: boolean) => {
      coils[at] = on
      writes.push([at, on])
    },
  }
  return new Promise((resolve, reject) => {
    // modbus-serial treats the number 0 as no port and listens on 502. It forwards the text '0' to node:net, which
    // picks a free port.
    const server = new ModbusRTU.ServerTCP(vector, { host: '127.0.0.1', port: '0' as unknown as number, unitID: 1 })
    server.on('error', reject)
    server.on('serverError', reject)
    server.on('socketError', () => {})
    const inner = (server as unknown as { _server: Server })._server
    const ready = () => {
      const address = inner.address()
      const close = () => new Promise<void>((done) => server.close(() => done()))
      resolve({ port: typeof address === 'object' && address ? address.port : 0, coils, writes, close })
    }
    if (inner.listening) ready()
    else inner.once('listening', ready)
  })
}

describe('our driver against the board of modbus-serial', () => {
  test('identifies, releases, sounds a siren, reconnects and stops', async () => {
    const board = await independentBoard()
    // The second board has its own port, because another program may have taken the first port.
    let port: number | null = board.port
    const openLink: OpenLink = (_, signal) =>
      port === null ? Promise.reject(new LinkFault('refused', 'nothing listens')) : openTcp('127.0.0.1', port, signal)
    const link = { tcp: 'board:502' }
    const door = {
      deviceId: 'door',
      driver: 'modbus',
      link,
      output: 0,
      confirmInput: 0,
      pulseMs: 50,
      siren: { output: 3 },
    }
    const bench = realBench([door], { openLink })
    cleanups.push(() => bench.supervisor.stop())
    await bench.untilState('door', 'ready')

    const commandResult = await bench.supervisor.execute('door', RELEASE, forEver())
    expect(commandResult).toMatchObject({ outcome: 'confirmed', detail: 'input_changed: input 0 changed to 1' })
    await bench.untilEvent((event) => event.type === 'input' && !event.on)
    expect(board.writes.filter(([coil]) => coil === 0).map(([, on]) => on)).toEqual([false, true, false])

    await bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds: 60 }, forEver())
    expect(board.coils[3]).toBe(true)

    port = null
    await board.close()
    await bench.untilState('door', 'absent')
    const again = await independentBoard()
    port = again.port
    cleanups.push(() => again.close())
    await bench.untilState('door', 'ready')
    expect(again.coils[3]).toBe(true)

    await bench.supervisor.stop()
    expect(again.coils).toEqual(Array.from({ length: 8 }, () => false))
  })
})

describe.each(['tcp', 'rtu'] as const)('the client of modbus-serial against our simulated board (%s)', (framing) => {
  async function connected() {
    const board = new RelayBoard({ platform: realPlatform, framing })
    const service: TcpService = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    const client = new ModbusRTU.default()
    cleanups.push(
      () => service.close(),
      () => new Promise<void>((done) => client.close(() => done())),
    )
    if (framing === 'tcp') await client.connectTCP('127.0.0.1', { port: service.port })
    else await client.connectTelnet('127.0.0.1', { port: service.port })
    client.setID(1)
    client.setTimeout(2_000)
    return { board, service, client }
  }

  test('reads and writes everything', async () => {
    const { board, client } = await connected()
    await client.writeCoil(2, true)
    await client.writeCoils(4, [true, false, true])
    expect((await client.readCoils(0, 8)).data).toEqual([false, false, true, false, true, false, true, false])
    expect(board.log.map(({ coil, on }) => [coil, on])).toEqual([
      [2, true],
      [4, true],
      [6, true],
    ])
    board.setInput(5, true)
    expect((await client.readDiscreteInputs(0, 8)).data[5]).toBe(true)
    await client.writeRegister(1, 0xbeef)
    await client.writeRegisters(2, [1, 2])
    expect((await client.readHoldingRegisters(1, 3)).data).toEqual([0xbeef, 1, 2])
  })

  test('refuses like a board', async () => {
    const { client } = await connected()
    await expect(client.readCoils(0, 9)).rejects.toMatchObject({ modbusCode: 2 })
    await expect(client.readInputRegisters(0, 1)).rejects.toMatchObject({ modbusCode: 1 })
  })

  test('shows its faults to an independent client', async () => {
    const { board, client } = await connected()
    board.faults.on({ kind: 'exception', code: 4, functions: [5], times: 1 })
    await expect(client.writeCoil(0, true)).rejects.toMatchObject({ modbusCode: 4 })
    await client.writeCoil(0, true)
    expect(board.coils[0]).toBe(true)
  })
})

describe.each(['tcp', 'rtu'] as const)('our driver against our board over real sockets (%s)', (framing) => {
  test('releases, survives a cut and releases again', async () => {
    const board = new RelayBoard({ platform: realPlatform, framing })
    const service = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    cleanups.push(() => service.close())
    const link = { tcp: `127.0.0.1:${service.port}` }
    const bench = realBench([
      { deviceId: 'door', driver: 'modbus', framing, link, output: 0, confirmInput: 0, pulseMs: 50 },
    ])
    cleanups.push(() => bench.supervisor.stop())
    await bench.untilState('door', 'ready')
    expect(await bench.supervisor.execute('door', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
    service.cut()
    await bench.untilState('door', 'degraded')
    await bench.untilState('door', 'ready')
    expect(await bench.supervisor.execute('door', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
    await bench.supervisor.stop()
    expect(board.coils[0]).toBe(false)
    expect(board.writes.filter((write) => write.coil === 0 && write.on)).toHaveLength(2)
  })

  test('reports unknown for a reset instead of the answer to ON, and writes OFF on the new connection', async () => {
    const board = new RelayBoard({ platform: realPlatform, framing, locks: [] })
    const service = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    cleanups.push(() => service.close())
    const link = { tcp: `127.0.0.1:${service.port}` }
    const bench = realBench([
      { deviceId: 'door', driver: 'modbus', framing, link, output: 0, confirmInput: 0, pulseMs: 50 },
    ])
    cleanups.push(() => bench.supervisor.stop())
    await bench.untilState('door', 'ready')
    board.faults.on({ kind: 'cut-before-answer', functions: [5], times: 1 })
    expect(await bench.supervisor.execute('door', RELEASE, forEver())).toMatchObject({
      outcome: 'unknown',
      commanded: true,
    })
    expect(board.coils[0]).toBe(true)
    await bench.untilState('door', 'ready')
    expect(board.writes.filter((write) => write.coil === 0).map((write) => write.on)).toEqual([false, true, false])
  })
})
