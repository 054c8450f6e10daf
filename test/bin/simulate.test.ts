// @module-tag extended
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findTool } from '../verification/tools.ts'
import { afterEach, describe, expect, it } from 'vitest'
import { readTrace } from '../../device-drivers/kit/protocol/codec.ts'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { forEver } from '../device-drivers/workbench.ts'
import { realBench, type RealBench } from '../device-drivers/real-io.ts'
import type { Json } from '../support/cloud.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { until } from '../support/receiver.ts'
import { EXTENDED } from '../support/extended.ts'

const folder = temporaryFolder('simulate')
const running: RunningProcess[] = []
const benches: RealBench[] = []
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.supervisor.stop()
  for (const each of running.splice(0).reverse()) await each.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(args: string[], stdin: 'ignore' | 'pipe' = 'ignore'): Promise<RunningProcess> {
  const started = await startProcess(args, { stdin })
  running.push(started)
  return started
}

function benchOf(...options: Parameters<typeof realBench>): RealBench {
  const bench = realBench(...options)
  benches.push(bench)
  return bench
}

const hasTerminal = process.platform === 'linux' && findTool('/usr/bin/script') !== undefined

describe('untag simulate', () => {
  // A shell on a terminal of its own starts it with `&`. The kernel stops background processes that read the terminal.
  it.skipIf(!hasTerminal)(
    `works in the background of a terminal${hasTerminal ? '' : ' (skipped: needs Linux and the program script)'}`,
    EXTENDED,
    async () => {
      ensureBuilt()
      mkdirSync(folder, { recursive: true })
      const out = join(folder, 'board.out')
      const file = join(folder, 'terminal.sh')
      writeFileSync(
        file,
        `set -m
        '${process.execPath}' '${join(ROOT, 'bin/untag.js')}' simulate relay-board > '${out}' &
        until grep -q '^ready ' '${out}'; do sleep 0.1; done
        env kill -TERM $!
        wait $!
        echo "ended with $?"`,
      )
      const terminal = promisify(execFile)('script', ['-qec', `bash ${file}`, '/dev/null'], { timeout: 120_000 })
      // Input waits on the terminal, so a process that reads it would be stopped.
      terminal.child.stdin?.end('input 0 on\n')
      const { stdout } = await terminal
      expect(stdout).toContain('ended with 0')
    },
  )

  it('till: posts what the cashier types to an agent', async () => {
    const posted: string[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => void (body += chunk.toString()))
      request.on('end', () => {
        posted.push(`${request.url} ${request.headers.authorization} ${body}`)
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ synced: true, items: [{ tag: 'E28011606000020487654321', itemStatus: 'paid' }] }))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const agent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const till = await start(['simulate', 'till', '--agent', agent, '--credential', 'untag_pair_x'], 'pipe')
      expect(till.ready).toMatchObject({ agent, tillId: 'till-1' })
      till.writeLine('sale e28011606000020487654321')
      await until('the sale', async () => posted.length === 1)
      expect(posted[0]).toMatch(/^\/v1\/sales Bearer untag_pair_x .*"epcs":\["E28011606000020487654321"\]/)
      till.writeLine('c')
      till.writeLine('v')
      till.writeLine('o')
      await until('the void', async () => posted.length === 2)
      expect(posted[1]).toMatch(/^\/v1\/sales\/void /)
      const refused = await runProcess(['simulate', 'till'])
      expect(refused.stderr).toContain('untag edge pair')
    } finally {
      server.close()
    }
  })

  it('nfc: simulates a reader with tags from stdin, and an agent switches the EAS bit off', async () => {
    const socket = join(temporaryFolder('nfc'), 'pcscd.sock')
    const nfc = await start(['simulate', 'nfc', '--socket', socket], 'pipe')
    expect(nfc.ready).toEqual({ socket, reader: 'Untag simulated NFC reader 00 00' })
    const seen = await runProcess(['doctor', '--pcscd-socket', socket])
    expect(seen.stdout).toContain('Untag simulated NFC reader')

    const bench = benchOf([{ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'untag' } }], {
      openLink: (link, signal) => openLink('pcsc' in link ? { socket, ...link } : link, signal),
    })
    await bench.untilState('pad', 'ready')
    nfc.writeLine('put 04A2B3C4D5E680 https://example.com/r/ABC')
    expect(await bench.untilEvent((event) => event.type === 'scan')).toMatchObject({
      text: 'https://example.com/r/ABC',
    })
    const tag = { tagUid: 'E00401500A1B2C3D' }
    nfc.writeLine(`put ${tag.tagUid}`)
    expect(
      await bench.untilEvent(
        (event) =>
          event.type === 'tags' && event.reads.some((read) => 'tagUid' in read.tag && read.tag.tagUid === tag.tagUid),
      ),
    ).toBeDefined()
    expect(await bench.supervisor.execute('pad', { kind: 'release', tag }, forEver())).toMatchObject({
      outcome: 'confirmed',
    })
    nfc.writeLine('show')
    nfc.writeLine('put 12')
    await until('what it says', () => nfc.lines.length === 2)
    expect(nfc.lines).toEqual(['eas off', 'a UID is 8, 14 or (beginning with E0) 16 hex digits'])
    nfc.writeLine('unplug')
    await bench.untilState('pad', 'absent')
    nfc.writeLine('plug')
    await bench.untilState('pad', 'ready')
  })

  it('nfc: replaces the socket of a killed process, and removes its own when it ends', async () => {
    const socket = join(temporaryFolder('nfc-socket'), 'missing', 'pcscd.sock')
    const killed = await start(['simulate', 'nfc', '--socket', socket])
    await killed.kill()
    expect(statSync(socket).isSocket()).toBe(true)
    const next = await start(['simulate', 'nfc', '--socket', socket])
    expect((await runProcess(['simulate', 'nfc', '--socket', socket])).code).toBe(1)
    await next.stop()
    expect(statSync(socket, { throwIfNoEntry: false })).toBeUndefined()
  })

  it('replay: serves the device’s side of a trace of untag edge --trace', async () => {
    const [data, edge, traces, config] = ['cloud', 'edge', 'traces', 'edge.json'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
      string,
    ]
    const board = await start(['simulate', 'relay-board'])
    const cloud = await start(['cloud', '--port', '0', '--mqtt-port', '0', '--data', data])
    const { key } = JSON.parse(
      (await runProcess(['keys', 'create', '--data', data, '--account', 'Shop', '--json'])).stdout,
    ) as Json
    const api = String(cloud.ready['baseUrl'])
    const call = async (operation: string, body: Json): Promise<Json> =>
      (
        await fetch(`${api}/${operation}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json()
    const { stores } = await call('fetchStores', {})
    const { code } = await call('createEnrolmentCode', { storeId: stores[0].storeId, name: 'test' })
    expect(await runProcess(['edge', 'enrol', '--cloud', api, '--code', code, '--data', edge])).toMatchObject({
      code: 0,
    })
    const entry = { deviceId: 'dev_board', driver: 'modbus', output: 0, confirmInput: 0, pulseMs: 100 }
    writeFileSync(config, JSON.stringify({ devices: [{ ...entry, link: { tcp: board.ready['tcp'] } }] }))

    const agent = await start(['edge', '--data', edge, '--port', '0', '--config', config, '--trace', traces])
    const written = () =>
      readdirSync(traces).reduce((text, name) => text + readFileSync(join(traces, name), 'utf8'), '')
    await until('the board to have answered', () => readTrace(written()).filter(({ kind }) => kind === 'in').length > 2)
    expect(await agent.stop()).toBe(0)
    const [file = ''] = readdirSync(traces)
    expect(file).toMatch(/^tcp_127\.0\.0\.1_\d+\.trace$/)
    expect(statSync(join(traces, file)).mode & 0o077).toBe(0)
    await board.stop()

    const device = await start(['simulate', 'replay', join(traces, file)])
    expect(device.ready).toMatchObject({ connections: 1 })
    const bench = benchOf([{ ...entry, link: { tcp: device.ready['tcp'] } }])
    expect((await bench.untilState('dev_board', 'ready')).detail).toContain('Modbus TCP unit 1')
  })

  it.each([
    ['relay-board', ['--vendor-defaults'], { driver: 'modbus', framing: 'rtu', unit: 255, output: 0 }, 'ready', []],
    [
      'relay-board',
      ['--framing', 'rtu', '--quirk', 'echo'],
      { driver: 'modbus', framing: 'rtu', output: 0 },
      'ready',
      ['echo'],
    ],
    ['relay-board', ['--quirk', 'other-unit'], { driver: 'modbus', output: 0 }, 'degraded', ['wrong_address']],
    ['uhf-m100', ['--vendor-defaults', '--quirk', 'slow'], { driver: 'uhf-m100' }, 'ready', []],
    ['osdp', ['--vendor-defaults'], { driver: 'osdp', key: 'AB'.repeat(16), installMode: true }, 'ready', []],
    ['gate', ['--quirk', 'foreign-access-spec'], { driver: 'llrp' }, 'ready', []],
    ['gate', ['--quirk', 'other-channel'], { driver: 'llrp', transmitPowerDbm: 27 }, 'ready', []],
    ['gate', ['--quirk', 'never-starts'], { driver: 'llrp' }, 'degraded', []],
    ['impinj-iot', ['--quirk', 'no-stream-settings'], { driver: 'impinj-iot', password: 'impinj' }, 'ready', []],
    ['impinj-iot', ['--quirk', 'needs-content-length'], { driver: 'impinj-iot', password: 'impinj' }, 'ready', []],
    ['impinj-iot', ['--quirk', 'slow-start'], { driver: 'impinj-iot', password: 'impinj' }, 'ready', []],
    ['impinj-iot', ['--quirk', 'never-starts'], { driver: 'impinj-iot', password: 'impinj' }, 'degraded', []],
    ['zebra-iotc', ['--quirk', 'never-starts'], { driver: 'zebra-iotc', topics: 'zebra/FX9600F0F4B5' }, 'degraded', []],
  ] as const)('%s %j has the peculiarity', async (name, options, entry, state, findings) => {
    const device = await start(['simulate', name, ...options])
    const kind = name === 'impinj-iot' ? 'http' : name === 'zebra-iotc' ? 'mqtt' : 'tcp'
    const bench = benchOf([{ deviceId: 'dev', ...entry, link: { [kind]: device.ready['tcp'] } }])
    expect((await bench.untilState('dev', state)).findings.map(({ code }) => code)).toEqual(findings)
  })

  it('refuses a peculiarity of another device', async () => {
    const refused = await runProcess(['simulate', 'osdp', '--quirk', 'select-mode'])
    expect(refused.stderr).toContain('--quirk select-mode is for uhf-m100, not for osdp')
  })
})
