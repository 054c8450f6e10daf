import { capabilitiesOf } from '../../../device-drivers/drivers/registry.ts'
import type { SupervisorOptions } from '../../../device-drivers/supervisor.ts'
import { readConfig, type AgentConfig } from '../../../edge-agent/config.ts'
import { UNREADABLE_AFTER_MS } from '../../../edge-agent/devices/emergency.ts'
import type { Core } from '../virtual/core.ts'
import type { Process } from '../virtual/machine.ts'

/**
 *   panel ──wire──▶ input of the gate's board ──▶ agent ──▶ what it holds open
 *                                                            ▲ the oracle compares with the panel
 *
 * A fire panel at the gate, and the outputs as they physically are: both outlive the processes of the agent.
 */
export interface Emergencies {
  /** The settings of an agent with the panel at its gate. */
  configOf(config: AgentConfig): AgentConfig
  /** A process begins to drive its devices; until `disconnect` it learns what the panel says. */
  connect(process: Process, options: SupervisorOptions): { disconnect(): void }
  /** An agent commands an output to stay open, or not. */
  held(deviceId: string, open: boolean): void
  press(): void
  clear(): void
  /** The board with the input leaves the network, and comes back. */
  unplug(): void
  plug(): void
  heal(): void
  /** Nothing may be held open when all is well. */
  checkEnd(): void
}

const INPUT = { input: 7, wiring: 'normally_closed' } as const
/** A board reports a change within so long, ms. */
const REPORT_MS = 100
/** By then the way out must be open, or locked again, ms. */
const WITHIN_MS = 1_000
/** Oscillators drift. */
const DRIFT_MS = 100

interface Connected {
  process: Process
  options: SupervisorOptions
}

/** The panel of one world; nothing is pressed. */
export function emergencies(core: Core, devices: { readonly gate: string; readonly station: string }): Emergencies {
  const { scheduler, trace } = core
  const chance = core.chance.fork('fire panel')
  const open = new Set<string>()
  let isPressed = false
  let unpluggedMs: number | undefined
  /** Grows with every change of the panel and its plug. */
  let version = 0
  let reader: Connected | undefined

  const lostMs = () => (unpluggedMs === undefined ? 0 : scheduler.nowMs - unpluggedMs)

  /** The process that drives the gate learns what there is now, a moment later. */
  function report(): void {
    const to = reader
    scheduler.after(chance.between(1, REPORT_MS), () => {
      if (!to || to !== reader || !to.process.isAlive) return
      const { onState, onEvent } = to.options
      const isThere = unpluggedMs === undefined
      const since = to.process.platform.clock.wall()
      const state = isThere ? ('ready' as const) : ('absent' as const)
      if (isThere) void onEvent?.(devices.gate, { type: 'emergency', on: isPressed })
      void onState?.({ deviceId: devices.gate, driver: 'modbus', state, since, detail: 'simulated' })
    })
  }

  /** Looks at the gate after the time that an agent which runs all along may take. */
  function expectSoon(): void {
    const [mine, to] = [version, reader]
    const isLost = unpluggedMs !== undefined
    scheduler.after((isLost ? UNREADABLE_AFTER_MS : 0) + WITHIN_MS, () => {
      if (mine !== version || !to || to !== reader || !to.process.isAlive) return
      const mustBeOpen = isPressed || isLost
      // What is unplugged while it is pressed stays as the agent knew it.
      if (mustBeOpen === open.has(devices.gate)) return
      core.violate('emergency', `the gate is ${mustBeOpen ? 'shut in an emergency' : 'open after an emergency'}`)
    })
  }

  function changed(what: string): void {
    version++
    trace.note('panel', what)
    report()
    expectSoon()
  }

  function plug(): void {
    if (unpluggedMs === undefined) return
    unpluggedMs = undefined
    changed('its board is back')
  }

  function clear(): void {
    if (!isPressed) return
    isPressed = false
    changed('clears')
  }

  return {
    configOf(config) {
      const entries = config.devices.map((device) => {
        if (capabilitiesOf(device).releases !== 'output') return device
        if (device.deviceId === devices.gate) return { ...device, emergency: INPUT, opensInEmergency: true }
        // Said by mistake of the deactivator: the policy knows what it is.
        return { ...device, opensInEmergency: device.deviceId === devices.station }
      })
      const checked = readConfig(JSON.stringify({ devices: entries }))
      if (!checked.ok) throw new Error(checked.faults.join('\n'))
      return checked.config
    },
    connect(process, options) {
      const own: Connected = { process, options }
      if (options.devices.some(({ deviceId }) => deviceId === devices.gate)) {
        reader = own
        changed('is read by a new process')
      }
      return {
        disconnect() {
          if (reader === own) reader = undefined
        },
      }
    },
    held(deviceId, isOpen) {
      trace.note('panel', `${deviceId.slice(-6)} is ${isOpen ? 'held open' : 'let go'}`)
      if (isOpen) open.add(deviceId)
      else open.delete(deviceId)
      if (isOpen && deviceId !== devices.gate) core.violate('I2', `${deviceId} was opened by an emergency`)
      const isReason = isPressed || lostMs() >= UNREADABLE_AFTER_MS - DRIFT_MS
      if (isOpen && !isReason) core.violate('I2', 'the gate was opened and no emergency input is active')
      if (!isOpen && deviceId === devices.gate && isPressed && unpluggedMs === undefined)
        core.violate('emergency', 'the gate was shut in an emergency')
    },
    press() {
      if (isPressed) return
      isPressed = true
      changed('is pressed')
    },
    clear,
    unplug() {
      if (unpluggedMs !== undefined) return
      unpluggedMs = scheduler.nowMs
      changed('its board is unplugged')
    },
    plug,
    heal() {
      plug()
      clear()
    },
    checkEnd() {
      if (open.size > 0) core.violate('emergency', `${[...open].join(', ')} is open after all emergencies`)
    },
  }
}
