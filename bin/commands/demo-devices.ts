import { readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { scannerSimulator, type ScannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'

/** A lane of the demonstration: a simulated relay board and scanner that use their real protocols over TCP. */
export interface DemoLane {
  deviceId: string
  name: string
  board: RelayBoard
  scanner: ScannerSimulator
}

export interface DemoDevices {
  lanes: Record<'station' | 'detacher' | 'gate', DemoLane>
  /** Carries a tag past the gate's antennas, from inside to outside. Resolves when the tag is outside. */
  walkOut(epc: string): Promise<void>
  /** True while the fire panel at the gate is active. */
  readonly isEmergency: boolean
  /** Activates or resets the fire panel: a contact at an input of the gate's board. */
  setEmergency(isActive: boolean): void
  config: AgentConfig
  stop(): Promise<void>
}

/**
 * Duration of a walk, ms. A new gate does not know yet which tags are stationary. Such a gate detects a tag as leaving
 * only if the walk is slow.
 */
const WALK_MS = 1_500
const LOOK_MS = 100
const EMERGENCY_INPUT = 5
const LOCK = { coil: 0, input: 0, openMs: 30, closeMs: 30 }

/** Starts the three lanes and the gate's reader. Returns the lanes with the agent's configuration for them. */
export async function startDemoDevices(
  deviceIds: Record<'station' | 'detacher' | 'gate', string>,
  platform: Platform,
): Promise<DemoDevices> {
  const services: TcpService[] = []
  const entries: object[] = []

  async function lane(deviceId: string, name: string, extra: object): Promise<DemoLane> {
    const board = new RelayBoard({ platform, locks: [LOCK] })
    const scanner = scannerSimulator({ platform })
    const boardPort = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    const scannerPort = await serveTcp({ port: 0, serve: (link) => scanner.serve(link) })
    services.push(boardPort, scannerPort)
    entries.push(
      {
        deviceId,
        driver: 'modbus',
        link: { tcp: `127.0.0.1:${boardPort.port}` },
        unit: 1,
        output: 0,
        confirmInput: 0,
        pulseMs: 200,
        opensInEmergency: false,
        ...extra,
      },
      {
        deviceId: `${deviceId}-scanner`,
        driver: 'scanner',
        link: { tcp: `127.0.0.1:${scannerPort.port}` },
        feeds: deviceId,
        duplicateMs: 0,
      },
    )
    return { deviceId, name, board, scanner }
  }

  const lanes = {
    station: await lane(deviceIds.station, 'Staff station', {}),
    detacher: await lane(deviceIds.detacher, 'Self-checkout detacher', {}),
    gate: await lane(deviceIds.gate, 'Exit gate', {
      siren: { output: 1, seconds: 3 },
      amber: { output: 2 },
      green: { output: 3 },
      passageInput: 1,
      emergency: { input: EMERGENCY_INPUT, wiring: 'normally_open' },
      opensInEmergency: true,
    }),
  }
  // The gate's UHF reader has one antenna inside and one outside.
  const reader = llrpReader({ platform, antennas: 2 })
  const readerPort = await serveTcp({ port: 0, serve: (link) => reader.serve(link) })
  services.push(readerPort)
  entries.push({
    deviceId: `${deviceIds.gate}-reader`,
    driver: 'llrp',
    link: { tcp: `127.0.0.1:${readerPort.port}` },
    antennas: { inside: [1], outside: [2] },
    feeds: deviceIds.gate,
  })

  async function walkOut(epc: string): Promise<void> {
    for (let ms = 0; ms < WALK_MS; ms += LOOK_MS) {
      reader.see(epc, { antenna: ms < WALK_MS / 3 ? 1 : 2, rssiDbm: -52 })
      await pause(platform.timers, LOOK_MS)
    }
  }

  const checked = readConfig(JSON.stringify({ devices: entries }))
  if (!checked.ok) throw new Error(checked.faults.join('\n'))
  return {
    lanes,
    walkOut,
    get isEmergency() {
      return lanes.gate.board.inputs[EMERGENCY_INPUT] === true
    },
    setEmergency: (isActive) => lanes.gate.board.setInput(EMERGENCY_INPUT, isActive),
    config: checked.config,
    stop: async () => void (await Promise.all(services.map((s) => s.close()))),
  }
}
