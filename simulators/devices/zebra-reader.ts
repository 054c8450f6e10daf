import { zebraTopics } from '../../device-drivers/protocols/zebra-iotc/messages.ts'
import type { Platform } from '../../policy/platform.ts'
import type { MessageBus } from './mqtt-broker.ts'

export interface ZebraReaderOptions {
  readonly platform: Platform
  readonly bus: MessageBus
  /** Base of its topics; default `zebra/FX9600F0F4B5`. */
  readonly base?: string
  onChange?(change: { gpo: number; on: boolean }): void
}

/** A simulated Zebra FX9600 with its IoT Connector. */
export interface ZebraReader {
  see(epc: string, sighting?: { antenna?: number; rssiDbm?: number }): void
  /** Several tags in one message, as a list of events. */
  seeMany(epcs: readonly string[]): void
  /** The network is away: what it sees is kept, and told when it is back. */
  disconnect(on: boolean): void
  mute(on: boolean): void
  loseAnswers(on: boolean): void
  /** Outputs off, radio off. */
  reboot(): void
  stopReading(): void
  /** By how much its clock is wrong, ms. */
  setClock(offsetMs: number): void
  readonly outputs: ReadonlyMap<number, boolean>
  readonly writes: readonly { gpo: number; on: boolean }[]
  readonly isReading: boolean
}

const GPOS = [1, 2, 3, 4]
const MOST_KEPT = 10_000
/** Zebra writes its own time with an offset and no colon in it. */
const ZONE_MS = -6 * 3_600_000
const ZONE = '-0600'

/** Makes a reader with four outputs on a bus. */
export function zebraReader({ platform, bus, base = 'zebra/FX9600F0F4B5', onChange }: ZebraReaderOptions): ZebraReader {
  const topics = zebraTopics(base)
  const outputs = new Map(GPOS.map((gpo) => [gpo, false]))
  const writes: { gpo: number; on: boolean }[] = []
  let kept: string[] = []
  let isReading = false
  let isAway = false
  let isMute = false
  let losesAnswers = false
  let offsetMs = 0
  let eventNum = 0

  const stamp = () => new Date(platform.clock.wall() + offsetMs + ZONE_MS).toISOString().replace('Z', ZONE)

  function tell(message: unknown): void {
    const text = JSON.stringify(message)
    if (!isAway && !isMute) return bus.publish(topics.data, text)
    kept.push(text)
    if (kept.length > MOST_KEPT) kept = kept.slice(-MOST_KEPT)
  }

  function event(epc: string, { antenna = 1, rssiDbm = -55 }: { antenna?: number; rssiDbm?: number } = {}): object {
    const data = { antenna, eventNum: ++eventNum, format: 'epc', idHex: epc.toLowerCase(), peakRssi: rssiDbm, reads: 1 }
    return { data, timestamp: stamp(), type: 'SIMPLE' }
  }

  function write({ port, state }: { port?: unknown; state?: unknown }): boolean {
    if (typeof port !== 'number' || typeof state !== 'boolean' || !outputs.has(port)) return false
    writes.push({ gpo: port, on: state })
    if (outputs.get(port) !== state) {
      outputs.set(port, state)
      onChange?.({ gpo: port, on: state })
    }
    return true
  }

  /** The payload of a success, or null for a failure. */
  function carryOut(command: string, payload: Record<string, unknown>): object | null {
    if (command === 'get_version')
      return { readerApplication: '3.21.23.0', model: 'FX9600', serialNumber: '84248df0f4b5' }
    if (command === 'get_status')
      return {
        systemTime: new Date(platform.clock.wall() + offsetMs).toISOString().replace(/\.\d+Z/, '+00:00'),
        radioActivitiy: isReading ? 'active' : 'inactive',
      }
    if (command === 'set_gpo') return write(payload) ? {} : null
    if (command === 'start') {
      if (isReading) return null
      isReading = true
      return {}
    }
    if (command !== 'stop') return null
    isReading = false
    return {}
  }

  function onCommand(text: string, answerTo: string): void {
    if (isMute || isAway) return
    const {
      command = '',
      command_id: id = '',
      payload = {},
    } = JSON.parse(text) as { command?: string; command_id?: string; payload?: Record<string, unknown> }
    const done = carryOut(command, payload)
    if (losesAnswers) return
    bus.publish(
      answerTo,
      JSON.stringify({
        command,
        command_id: id,
        response: done ? 'success' : 'failure',
        payload: done ?? { message: 'not carried out' },
      }),
    )
  }

  bus.subscribe(topics.managementCommand, (text) => onCommand(text, topics.managementResponse))
  bus.subscribe(topics.controlCommand, (text) => onCommand(text, topics.controlResponse))

  return {
    see(epc, sighting) {
      if (isReading) tell(event(epc, sighting))
    },
    seeMany(epcs) {
      if (isReading) tell(epcs.map((epc) => event(epc)))
    },
    disconnect(on) {
      isAway = on
      if (!on) for (const text of kept.splice(0)) bus.publish(topics.data, text)
    },
    mute: (on) => void (isMute = on),
    loseAnswers: (on) => void (losesAnswers = on),
    reboot() {
      isReading = false
      kept = []
      for (const gpo of outputs.keys()) outputs.set(gpo, false)
    },
    stopReading: () => void (isReading = false),
    setClock: (offset) => void (offsetMs = offset),
    outputs,
    writes,
    get isReading() {
      return isReading
    },
  }
}
