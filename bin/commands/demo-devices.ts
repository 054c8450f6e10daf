import { readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import type { Platform } from '../../policy/platform.ts'
import { relayBoard, type RelayBoard } from '../../simulators/devices/relay-board.ts'
import { scannerSimulator, type ScannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'

/** A lane of the demonstration: a relay board and a scanner on TCP ports, speaking real frames. */
export interface DemoLane {
  deviceId: string
  name: string
  board: RelayBoard
  scanner: ScannerSimulator
}

export interface DemoDevices {
  lanes: Record<'station' | 'detacher' | 'gate', DemoLane>
  config: AgentConfig
  stop(): Promise<void>
}

const LOCK = { coil: 0, input: 0, openMs: 30, closeMs: 30 }

/** Simulates the three lanes and writes the configuration that drives them. */
export async function startDemoDevices(deviceIds: Record<'station' | 'detacher' | 'gate', string>, platform: Platform): Promise<DemoDevices> {
  const services: TcpService[] = []
  const entries: object[] = []

  async function lane(deviceId: string, name: string, extra: object): Promise<DemoLane> {
    const board = relayBoard({ platform, locks: [LOCK] })
    const scanner = scannerSimulator({ platform })
    const boardPort = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    const scannerPort = await serveTcp({ port: 0, serve: (link) => scanner.serve(link) })
    services.push(boardPort, scannerPort)
    entries.push(
      { deviceId, driver: 'modbus', link: { tcp: `127.0.0.1:${boardPort.port}` }, unit: 1, output: 0, confirmInput: 0, pulseMs: 200, ...extra },
      { deviceId: `${deviceId}-scanner`, driver: 'scanner', link: { tcp: `127.0.0.1:${scannerPort.port}` }, feeds: deviceId, duplicateMs: 0 },
    )
    return { deviceId, name, board, scanner }
  }

  const lanes = {
    station: await lane(deviceIds.station, 'Staff station', {}),
    detacher: await lane(deviceIds.detacher, 'Self-checkout detacher', {}),
    gate: await lane(deviceIds.gate, 'Exit gate', { siren: { output: 1, seconds: 3 }, amber: { output: 2 }, green: { output: 3 }, passageInput: 1 }),
  }
  const checked = readConfig(JSON.stringify({ devices: entries }))
  if (!checked.ok) throw new Error(checked.faults.join('\n'))
  return { lanes, config: checked.config, stop: async () => void (await Promise.all(services.map((s) => s.close()))) }
}
