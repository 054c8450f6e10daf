import { setMaxListeners } from 'node:events'
import { deadline, type Platform } from '../../policy/platform.ts'
import { result, type CommandResult, type DeviceCommand, type Signal } from './device.ts'
import { eitherSignal } from './input-watch.ts'
import type { DesiredOutputs } from './desired-outputs.ts'

/** A running command. The outcome may be known before the command has finished. Neither promise rejects. */
export interface RunningCommand {
  readonly outcome: Promise<CommandResult>
  readonly finished: Promise<unknown>
}

/** Runs the commands of one device one after the other. */
interface CommandQueue {
  /**
   * Begins the command after all earlier commands have finished. Returns `cancelled` at once if `signal` aborts while
   * the command waits.
   */
  run(signal: AbortSignal, begin: () => RunningCommand): Promise<CommandResult>
  /** Resolves when all commands so far have finished. */
  idle(): Promise<void>
}

/** Makes a queue in which at most `limit` commands wait. */
export function commandQueue(limit: number): CommandQueue {
  let tail: Promise<void> = Promise.resolve()
  let waiting = 0

  return {
    async run(signal, begin) {
      if (signal.aborted) return result('failed', false, 'cancelled')
      if (waiting >= limit)
        return result('failed', false, 'queue_full', `${limit} commands wait for this device already`)
      const previous = tail
      let finish = () => {}
      tail = new Promise<void>((resolve) => {
        finish = resolve
      })
      let giveUp = () => {}
      const givenUp = new Promise<void>((resolve) => {
        giveUp = resolve
      })
      signal.addEventListener('abort', giveUp, { once: true })
      waiting++
      await Promise.race([previous, givenUp])
      waiting--
      signal.removeEventListener('abort', giveUp)
      if (signal.aborted) {
        void previous.then(finish)
        return result('failed', false, 'cancelled')
      }
      const { outcome, finished } = begin()
      void finished.then(finish)
      return outcome
    },
    idle: () => tail,
  }
}

const MAX_RELEASES_WAITING = 8
const CLOSE_WITHIN_MS = 2_000

export type ReleaseCommand = Extract<DeviceCommand, { kind: 'release' }>

interface DeviceCommandsOptions {
  readonly platform: Platform
  /** Begins a release; releases never overlap. Undefined for a device that releases nothing. */
  release?: ((command: ReleaseCommand, signal: AbortSignal) => RunningCommand) | undefined
  /** Switches a siren or lamp. Undefined for a device without siren and lamp. */
  signal?(signal: Signal, seconds: number): Promise<CommandResult> | undefined
  /** Applies the state of an emergency. Undefined for a device without outputs. */
  emergency?(open: boolean, silent: boolean): Promise<CommandResult> | undefined
  /** Called first when the device is closed. At this time a release may still run. */
  onClosing?(): void
  /** Switches all reachable outputs off, after the last release. Ends when `signal` aborts. */
  switchOff(signal: AbortSignal): Promise<unknown> | undefined
  /** Disconnects from the link and stops all timers. */
  dispose(): void
}

/** Wraps a result as a command that has finished. */
export function completedCommand(outcome: CommandResult): RunningCommand {
  return { outcome: Promise.resolve(outcome), finished: Promise.resolve() }
}

/**
 * Executes the commands of one device until it is closed. Signals and emergencies are written at once; releases run one
 * after the other. `close` cancels the releases, switches the reachable outputs off within 2 s, and disposes of the
 * device.
 */
export class DeviceCommands {
  readonly #options: DeviceCommandsOptions
  readonly #releases = commandQueue(MAX_RELEASES_WAITING)
  readonly #closing = new AbortController()

  constructor(options: DeviceCommandsOptions) {
    this.#options = options
    // Each waiting command adds a listener, and the queue limits the number of waiting commands.
    setMaxListeners(0, this.#closing.signal)
  }

  /** Never rejects. */
  async execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    if (this.#closing.signal.aborted) return result('failed', false, 'not_ready', 'the device is being closed')
    const running = this.#begin(command, signal)
    return running ?? result('failed', false, 'not_supported', 'the device has no such output')
  }

  /** Takes at most about 2 s. */
  async close(): Promise<void> {
    this.#closing.abort(new DOMException('the device is being closed', 'AbortError'))
    this.#options.onClosing?.()
    const limit = deadline(this.#options.platform.timers, CLOSE_WITHIN_MS)
    const outOfTime = new Promise<void>((resolve) =>
      limit.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    await Promise.race([this.#releases.idle().then(() => this.#options.switchOff(limit.signal)), outOfTime])
    limit.done()
    this.#options.dispose()
  }

  #begin(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> | undefined {
    if (command.kind === 'signal') return this.#options.signal?.(command.signal, command.seconds)
    if (command.kind === 'emergency') return this.#options.emergency?.(command.open, command.silent)
    return this.#options.release && this.#release(this.#options.release, command, signal)
  }

  async #release(
    begin: NonNullable<DeviceCommandsOptions['release']>,
    command: ReleaseCommand,
    signal: AbortSignal,
  ): Promise<CommandResult> {
    const both = eitherSignal(signal, this.#closing.signal)
    const commandResult = await this.#releases.run(both.signal, () => {
      const running = begin(command, both.signal)
      void running.finished.then(both.done)
      return running
    })
    if (!commandResult.commanded) both.done()
    return commandResult
  }
}

interface OutputCommandsOptions extends Omit<DeviceCommandsOptions, 'signal' | 'emergency' | 'closing'> {
  readonly outputs: DesiredOutputs
  /** Called for each emergency command. `open`: true if the device must open. */
  onEmergency?(open: boolean): void
}

/** Makes the commands of a device whose outputs the agent restores after each reconnect. */
export function outputCommands({ outputs, onEmergency, ...options }: OutputCommandsOptions): DeviceCommands {
  return new DeviceCommands({
    ...options,
    signal: (signal, seconds) => outputs.signal(signal, seconds),
    emergency(open, silent) {
      onEmergency?.(open)
      return outputs.emergency(open, silent)
    },
    onClosing: () => outputs.allOff(),
  })
}
