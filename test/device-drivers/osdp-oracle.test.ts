// @module-tag extended
import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, test } from 'vitest'
import { realBench } from './real-io.ts'
import { forEver, RELEASE } from './workbench.ts'

/**
 * An independent device made with libosdp (goToMain/libosdp): the program `libosdp-peer.c`. Build it by hand, because
 * libosdp is no npm package. Its arguments are a key (32 hex digits or -) and optionally `install`. It prints `ready
 * PORT` and the commands that it receives: `OUT n control time`, `LED control colour`, `BUZ tone times`, `KEYSET key`.
 * The line `card` on its standard input presents a card. Its input 0 follows its output 0.
 */
const PROGRAM = process.env['UNTAG_TEST_LIBOSDP']
const KEY = '00112233445566778899AABBCCDDEEFF'

interface Peer {
  readonly port: number
  readonly lines: string[]
  readonly child: ChildProcessWithoutNullStreams
}

const peers: Peer[] = []
afterEach(() => {
  for (const { child } of peers.splice(0)) child.kill('SIGKILL')
})

async function peer(key: string, ...more: string[]): Promise<Peer> {
  const child = spawn(PROGRAM ?? '', [key, ...more])
  const lines: string[] = []
  const stdout = createInterface({ input: child.stdout })
  const port = await new Promise<number>((resolve) => {
    stdout.on('line', (line) => {
      lines.push(line)
      if (line.startsWith('ready ')) resolve(Number(line.slice(6)))
    })
  })
  const made = { port, lines, child }
  peers.push(made)
  return made
}

describe.skipIf(!PROGRAM)(
  `libosdp${PROGRAM ? '' : ' (skipped: build libosdp-peer.c with libosdp and name it in UNTAG_TEST_LIBOSDP)'}`,
  () => {
    const settings = (port: number, more: object) => [
      {
        deviceId: 'lock',
        driver: 'osdp',
        link: { tcp: `127.0.0.1:${port}` },
        key: KEY,
        output: 0,
        confirmInput: 0,
        amber: { led: 0 },
        siren: { buzzer: true },
        ...more,
      },
    ]

    test('works in the secure channel: a release, a card, LED and buzzer', async () => {
      const { port, lines, child } = await peer(KEY)
      const bench = realBench(settings(port, {}))
      expect((await bench.untilState('lock', 'ready')).identity).toMatchObject({
        serialNumber: '1234567',
        description: expect.stringContaining('in secure channel'),
      })
      child.stdin.write('card\n')
      expect(await bench.untilEvent((event) => event.type === 'tags')).toMatchObject({
        reads: [{ tag: { tagUid: '04A1B2C3' } }],
      })
      expect(await bench.supervisor.execute('lock', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
      await bench.untilEvent((event) => event.type === 'input' && !event.on)
      expect(
        await bench.supervisor.execute('lock', { kind: 'signal', signal: 'amber', seconds: 2 }, forEver()),
      ).toMatchObject({ outcome: 'confirmed' })
      expect(
        await bench.supervisor.execute('lock', { kind: 'signal', signal: 'siren', seconds: 2 }, forEver()),
      ).toMatchObject({ outcome: 'confirmed' })
      expect(lines.filter((line) => line.startsWith('OUT 0 5'))).toEqual(['OUT 0 5 5'])
      expect(lines).toContain('LED 2 3')
      expect(lines).toContain('BUZ 2 2')
      expect(bench.events.filter((event) => event.type === 'fault' || event.type === 'noise')).toEqual([])
      await bench.supervisor.stop()
    })

    test('never becomes ready with another key', async () => {
      const { port } = await peer('FF'.repeat(16))
      const bench = realBench(settings(port, {}))
      expect((await bench.untilState('lock', 'degraded')).detail).toMatch(/another key|no such key/)
      await bench.supervisor.stop()
    })

    test('receives and keeps its key in install mode', async () => {
      const { port, lines } = await peer('-', 'install')
      const bench = realBench(settings(port, { installMode: true }))
      await bench.untilState('lock', 'ready')
      expect(lines).toContain(`KEYSET ${KEY}`)
      expect(await bench.supervisor.execute('lock', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
      await bench.supervisor.stop()
    })

    test('works without a channel, with checksums', async () => {
      const { port } = await peer('-')
      const bench = realBench(settings(port, { key: undefined, insecure: true, check: 'checksum' }))
      await bench.untilState('lock', 'ready')
      expect(await bench.supervisor.execute('lock', RELEASE, forEver())).toMatchObject({ outcome: 'confirmed' })
      await bench.supervisor.stop()
    })
  },
)
