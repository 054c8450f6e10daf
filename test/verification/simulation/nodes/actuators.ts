import { result, type CommandResult, type DeviceCommand } from '../../../../device-drivers/kit/device.ts'
import type { DeviceStatus } from '../../../../device-drivers/device-connection.ts'
import type { Supervisor, SupervisorOptions } from '../../../../device-drivers/supervisor.ts'
import type { Emergencies } from './emergencies.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Process } from '../virtual/machine.ts'
import type { Scheduler } from '../virtual/scheduler.ts'
import type { Trace } from '../virtual/trace.ts'

/** Simulated locks, detachers and gates of a shop. They keep their state when the process of their agent ends. */
export interface Actuators {
  /** Creates the simulated device supervisor for one process of an agent. */
  supervisor(agent: string, process: Process): (options: SupervisorOptions) => Supervisor
  /** Probability that a device fails, 0 to 1. */
  failureRate: number
}

export interface ActuatorParts {
  scheduler: Scheduler
  chance: Chance
  trace: Trace
  /** Called when a device receives a release command. The agent's process may die in this call. */
  onRelease(agent: string, deviceId: string): void
  /** Fire panel, in runs that have one. */
  emergencies?: Pick<Emergencies, 'connect' | 'outputHeld'>
}

/** Outcome of a command and its duration, ms. If the caller aborts, the outcome is `unknown`. */
interface Ending {
  afterMs: number
  outcome: CommandResult
}

const FAILURES = ['jam', 'away', 'silent', 'late'] as const

/** Creates simulated devices without failures. */
export function actuators({ scheduler, chance: world, trace, onRelease, emergencies }: ActuatorParts): Actuators {
  const chance = world.fork('actuators')
  let failureRate = 0

  function ending(): Ending {
    if (!chance.happens(failureRate))
      return { afterMs: chance.between(50, 300), outcome: result('confirmed', true, 'input_changed') }
    switch (chance.one(FAILURES)) {
      case 'jam':
        return { afterMs: 1_200, outcome: result('failed', true, 'no_confirmation') }
      case 'away':
        return { afterMs: 1, outcome: result('failed', false, 'not_ready', 'unplugged') }
      case 'silent':
        return { afterMs: 60_000, outcome: result('unknown', true, 'answer_lost') }
      case 'late':
        return { afterMs: chance.between(5_000, 12_000), outcome: result('confirmed', true, 'input_changed') }
    }
  }

  function release(agent: string, process: Process, deviceId: string, signal: AbortSignal): Promise<CommandResult> {
    if (!process.isAlive) return new Promise(() => undefined)
    const { afterMs, outcome } = ending()
    trace.add(agent, `${deviceId.slice(-6)} released: ${outcome.detail} in ${afterMs} ms`)
    if (outcome.commanded) onRelease(agent, deviceId)
    return new Promise((resolve) => {
      const end = (as: CommandResult) => {
        cancel()
        if (process.isAlive) resolve(as)
      }
      const cancel = scheduler.after(afterMs, () => end(outcome))
      signal.addEventListener('abort', () => end(result('unknown', true, 'cancelled')), { once: true })
    })
  }

  return {
    get failureRate() {
      return failureRate
    },
    set failureRate(to) {
      failureRate = to
    },
    supervisor: (agent, process) => (options) => {
      const since = process.platform.clock.wall()
      const statusOf = ({ deviceId, driver }: Pick<DeviceStatus, 'deviceId' | 'driver'>): DeviceStatus => ({
        deviceId,
        driver,
        state: 'ready',
        since,
        detail: 'simulated',
        findings: [],
      })
      const statuses = options.devices.map(statusOf)
      const panel = emergencies?.connect(process, options)
      const status = (deviceId: string) => statuses.find((s) => s.deviceId === deviceId) ?? null
      return {
        statuses,
        status,
        async execute(deviceId: string, command: DeviceCommand, signal: AbortSignal) {
          if (!status(deviceId)) return result('failed', false, 'not_ready', `no device ${deviceId} is configured here`)
          if (command.kind === 'emergency' && process.isAlive) emergencies?.outputHeld(deviceId, command.open)
          return command.kind === 'release'
            ? release(agent, process, deviceId, signal)
            : result('confirmed', true, 'acknowledged')
        },
        add: (entry) => void statuses.push(statusOf(entry)),
        replace: async () => undefined,
        restart: (deviceId) => status(deviceId) !== null,
        stop() {
          panel?.disconnect()
          return Promise.resolve()
        },
      }
    },
  }
}
