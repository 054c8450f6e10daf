import { createInterface } from 'node:readline'
import { relayBoard } from '../../simulators/devices/relay-board.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp } from '../../simulators/devices/serve.ts'
import type { Values } from '../options.ts'
import { realPlatform } from '../platform.ts'
import type { SIMULATE_OPTIONS, SimulatorName } from '../settings.ts'
import { stopOnSignals } from '../shutdown.ts'
import { serveSerialSimulator } from './simulate-serial.ts'

type Settings = Values<typeof SIMULATE_OPTIONS>

export async function runSimulate(name: SimulatorName, settings: Settings): Promise<void> {
  const service = name === 'relay-board' ? await serveBoard(settings) : name === 'scanner' ? await serveScanner(settings) : await serveSerialSimulator(name, settings)
  stopOnSignals(service.close)
  process.stdout.write(`ready ${JSON.stringify({ tcp: `${settings.host}:${service.port}` })}\n`)
}

/** A Modbus board whose first output moves a lock; every change of an output is printed. */
async function serveBoard({ host, port, framing, lockOutput, lockInput }: Settings) {
  const board = relayBoard({
    platform: realPlatform(),
    framing,
    locks: [{ coil: lockOutput, input: lockInput, openMs: 30, closeMs: 30 }],
    onChange: ({ coil, on }) => void process.stdout.write(`output ${coil} ${on ? 'on' : 'off'}\n`),
  })
  return serveTcp({ host, port, serve: (link) => board.serve(link) })
}

/** A scanner that reads whatever is typed: each line of stdin is one code. */
async function serveScanner({ host, port }: Settings) {
  const scanner = scannerSimulator({ platform: realPlatform() })
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    if (line.trim() !== '') void scanner.scan(line.trim())
  })
  const service = await serveTcp({ host, port, serve: (link) => scanner.serve(link) })
  return {
    ...service,
    port: service.port,
    close: async () => {
      lines.close()
      await service.close()
    },
  }
}
