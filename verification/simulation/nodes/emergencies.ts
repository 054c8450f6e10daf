import { capabilitiesOf } from '../../../device-drivers/drivers/registry.ts'
import type { SupervisorOptions } from '../../../device-drivers/supervisor.ts'
import { readConfig, type AgentConfig } from '../../../edge-agent/config.ts'
import { UNREADABLE_AFTER_MS } from '../../../edge-agent/devices/emergency.ts'
import type { Chance } from '../virtual/chance.ts'
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
  /** Reports the state of the panel to a process that drives devices, until `disconnect`. */
  connect(process: Process, options: SupervisorOptions): { disconnect(): void }
  /** An agent commands an output to stay open, or not. */
  outputHeld(deviceId: string, open: boolean): void
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
  return new FirePanel(core, devices)
}

class FirePanel implements Emergencies {
  readonly #core: Core
  readonly #devices: { readonly gate: string; readonly station: string }
  readonly #chance: Chance
  readonly #open = new Set<string>()
  #isPressed = false
  #unpluggedMs: number | undefined
  /** Grows with every change of the panel and its plug. */
  #version = 0
  #reader: Connected | undefined

  constructor(core: Core, devices: { readonly gate: string; readonly station: string }) {
    this.#core = core
    this.#devices = devices
    this.#chance = this.#core.chance.fork('fire panel')
  }

  readonly plug = (): void => {
    if (this.#unpluggedMs === undefined) return
    this.#unpluggedMs = undefined
    this.#changed('its board is back')
  }

  readonly clear = (): void => {
    if (!this.#isPressed) return
    this.#isPressed = false
    this.#changed('clears')
  }

  configOf(config: AgentConfig): AgentConfig {
    const entries = config.devices.map((device) => {
      if (capabilitiesOf(device).releases !== 'output') return device
      if (device.deviceId === this.#devices.gate) return { ...device, emergency: INPUT, opensInEmergency: true }
      // A deliberate mistake in the configuration: the policy must ignore it for a deactivator.
      return { ...device, opensInEmergency: device.deviceId === this.#devices.station }
    })
    const checked = readConfig(JSON.stringify({ devices: entries }))
    if (!checked.ok) throw new Error(checked.faults.join('\n'))
    return checked.config
  }

  connect(process: Process, options: SupervisorOptions): { disconnect(): void } {
    const own: Connected = { process, options }
    if (options.devices.some(({ deviceId }) => deviceId === this.#devices.gate)) {
      this.#reader = own
      this.#changed('is read by a new process')
    }
    return {
      disconnect: () => {
        if (this.#reader === own) this.#reader = undefined
      },
    }
  }

  outputHeld(deviceId: string, isOpen: boolean): void {
    this.#core.trace.add('panel', `${deviceId.slice(-6)} is ${isOpen ? 'held open' : 'let go'}`)
    if (isOpen) this.#open.add(deviceId)
    else this.#open.delete(deviceId)
    if (isOpen && deviceId !== this.#devices.gate) this.#core.violate('I2', `${deviceId} was opened by an emergency`)
    const isReason = this.#isPressed || this.#lostMs() >= UNREADABLE_AFTER_MS - DRIFT_MS
    if (isOpen && !isReason) this.#core.violate('I2', 'the gate was opened and no emergency input is active')
    if (!isOpen && deviceId === this.#devices.gate && this.#isPressed && this.#unpluggedMs === undefined)
      this.#core.violate('emergency', 'the gate was shut in an emergency')
  }

  press(): void {
    if (this.#isPressed) return
    this.#isPressed = true
    this.#changed('is pressed')
  }

  unplug(): void {
    if (this.#unpluggedMs !== undefined) return
    this.#unpluggedMs = this.#core.scheduler.nowMs
    this.#changed('its board is unplugged')
  }

  heal(): void {
    this.plug()
    this.clear()
  }

  checkEnd(): void {
    if (this.#open.size > 0)
      this.#core.violate('emergency', `${[...this.#open].join(', ')} is open after all emergencies`)
  }

  #lostMs() {
    return this.#unpluggedMs === undefined ? 0 : this.#core.scheduler.nowMs - this.#unpluggedMs
  }

  /** The process that drives the gate learns what there is now, a moment later. */
  #report(): void {
    const to = this.#reader
    this.#core.scheduler.after(this.#chance.between(1, REPORT_MS), () => {
      if (!to || to !== this.#reader || !to.process.isAlive) return
      const { onState, onEvent } = to.options
      const isThere = this.#unpluggedMs === undefined
      const since = to.process.platform.clock.wall()
      const state = isThere ? ('ready' as const) : ('absent' as const)
      if (isThere) void onEvent?.(this.#devices.gate, { type: 'emergency', on: this.#isPressed })
      void onState?.({ deviceId: this.#devices.gate, driver: 'modbus', state, since, detail: 'simulated' })
    })
  }

  /** Looks at the gate after the time that an agent which runs all along may take. */
  #expectSoon(): void {
    const [mine, to] = [this.#version, this.#reader]
    const isLost = this.#unpluggedMs !== undefined
    this.#core.scheduler.after((isLost ? UNREADABLE_AFTER_MS : 0) + WITHIN_MS, () => {
      if (mine !== this.#version || !to || to !== this.#reader || !to.process.isAlive) return
      const mustBeOpen = this.#isPressed || isLost
      // What is unplugged while it is pressed stays as the agent knew it.
      if (mustBeOpen === this.#open.has(this.#devices.gate)) return
      this.#core.violate('emergency', `the gate is ${mustBeOpen ? 'shut in an emergency' : 'open after an emergency'}`)
    })
  }

  #changed(what: string): void {
    this.#version++
    this.#core.trace.add('panel', what)
    this.#report()
    this.#expectSoon()
  }
}
