import { capabilitiesOf } from '../../../../device-drivers/registry.ts'
import type { SupervisorOptions } from '../../../../device-drivers/supervisor.ts'
import { readConfig, type AgentConfig } from '../../../../edge-agent/config.ts'
import { UNREADABLE_AFTER_MS } from '../../../../edge-agent/devices/emergency.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Process } from '../virtual/machine.ts'

/**
 * A fire panel at the gate, and the state of the outputs. Panel and outputs keep their state when the process of the
 * agent ends. An oracle compares the outputs with the panel.
 */
export interface Emergencies {
  /** Adds the panel to the configuration of an agent. */
  configOf(config: AgentConfig): AgentConfig
  /** Reports the panel state to a process that drives devices, until `disconnect`. */
  connect(process: Process, options: SupervisorOptions): { disconnect(): void }
  /** Records that an agent holds an output open, or that the agent closes the output. */
  outputHeld(deviceId: string, open: boolean): void
  press(): void
  clear(): void
  /** Disconnects the board with the input from the network; `plug` connects it again. */
  unplug(): void
  plug(): void
  heal(): void
  /** Checks that no output is held open at the end of a run. */
  checkEnd(): void
}

const INPUT = { input: 7, wiring: 'normally_closed' } as const
/** Longest time until a board reports a change, ms. */
const REPORT_MS = 100
/** Time limit for the agent to open or lock the way out, ms. */
const WITHIN_MS = 1_000
/** Tolerance for clocks that drift, ms. */
const DRIFT_MS = 100

interface Connected {
  process: Process
  options: SupervisorOptions
}

/** Creates the fire panel of a run. At first the panel is not pressed. */
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
  /** Number of times that the panel or the plug changed. */
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
      // At the station this is a deliberate configuration error: the agent must not open a deactivator in an emergency.
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
    if (isOpen && deviceId !== this.#devices.gate) this.#core.violate('I2', `${deviceId} opened in an emergency`)
    const isReason = this.#isPressed || this.#lostMs() >= UNREADABLE_AFTER_MS - DRIFT_MS
    if (isOpen && !isReason) this.#core.violate('I2', 'the gate opened without an active emergency input')
    if (!isOpen && deviceId === this.#devices.gate && this.#isPressed && this.#unpluggedMs === undefined)
      this.#core.violate('emergency', 'the gate closed in an emergency')
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
      this.#core.violate('emergency', `${[...this.#open].join(', ')} is still open after all emergencies`)
  }

  #lostMs() {
    return this.#unpluggedMs === undefined ? 0 : this.#core.scheduler.nowMs - this.#unpluggedMs
  }

  /** Reports the current panel state to the process of the gate after a short delay. */
  #report(): void {
    const to = this.#reader
    this.#core.scheduler.after(this.#chance.between(1, REPORT_MS), () => {
      if (!to || to !== this.#reader || !to.process.isAlive) return
      const { onState, onEvent } = to.options
      const isThere = this.#unpluggedMs === undefined
      const since = to.process.platform.clock.wall()
      const state = isThere ? ('ready' as const) : ('absent' as const)
      if (isThere) void onEvent?.(this.#devices.gate, { type: 'emergency', on: this.#isPressed })
      void onState?.({
        deviceId: this.#devices.gate,
        driver: 'modbus',
        state,
        since,
        detail: 'simulated',
        findings: [],
      })
    })
  }

  /** Checks the gate after the time limit, unless panel or process have changed meanwhile. */
  #expectSoon(): void {
    const [mine, to] = [this.#version, this.#reader]
    const isLost = this.#unpluggedMs !== undefined
    this.#core.scheduler.after((isLost ? UNREADABLE_AFTER_MS : 0) + WITHIN_MS, () => {
      if (mine !== this.#version || !to || to !== this.#reader || !to.process.isAlive) return
      const mustBeOpen = this.#isPressed || isLost
      // An unplugged input counts as an emergency, so the gate must stay open.
      if (mustBeOpen === this.#open.has(this.#devices.gate)) return
      this.#core.violate(
        'emergency',
        `the gate is ${mustBeOpen ? 'closed in an emergency' : 'open after an emergency'}`,
      )
    })
  }

  #changed(what: string): void {
    this.#version++
    this.#core.trace.add('panel', what)
    this.#report()
    this.#expectSoon()
  }
}
