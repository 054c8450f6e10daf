import type { Cancel, Platform, Clock } from '../../policy/platform.ts'
import {
  LONGEST_SIGNAL_S,
  result,
  type CommandResult,
  type Signal,
  SILENCED,
  writeResult,
  type WriteAnswer,
} from './device.ts'
import { holdOpen, type HoldOpen } from './input-watch.ts'
import type { SwitchAnswer } from './release.ts'

interface OutputOptions {
  /** The releasing output, if the device has one. */
  readonly release: number | undefined
  readonly signals: ReadonlyMap<Signal, number>
  /** Setting `opensInEmergency`: true if an emergency opens the releasing output. */
  readonly opensInEmergency: boolean | undefined
  /** Name of an output in the settings, such as `output` or `gpo`. */
  readonly setting: string
  readonly platform: Platform
  /** Writes the state if the device is connected. Never rejects. */
  write(output: number, on: boolean): Promise<WriteAnswer>
}

/** Makes the desired outputs of one device. */
export function desiredOutputs(options: OutputOptions): DesiredOutputs {
  return new DesiredOutputs(options)
}

/**
 * The desired states of a device's outputs; they outlast each connection. The releasing output is on during a pulse and
 * while an emergency holds it open. A signal is on until its time is over. The driver writes the states after each
 * connect.
 */
export class DesiredOutputs {
  readonly #options: OutputOptions
  readonly #timers = new Map<Signal, Cancel>()
  #pulses = 0
  #version = 0
  #isSilent = false
  readonly #hold: HoldOpen

  constructor(options: OutputOptions) {
    this.#options = options
    this.#hold = holdOpen({
      timers: options.platform.timers,
      waits: options.opensInEmergency === true,
      isPulsing: () => this.#pulses > 0,
      write: (on) =>
        options.release === undefined ? Promise.resolve({ kind: 'answered' }) : options.write(options.release, on),
    })
  }

  /** Switches a signal on for some seconds, or off with 0. */
  async signal(signal: Signal, seconds: number): Promise<CommandResult> {
    const output = this.#options.signals.get(signal)
    if (output === undefined) {
      return result(
        'failed',
        false,
        'not_supported',
        `no ${signal} is configured; add "${signal}": { "${this.#options.setting}": … }`,
      )
    }
    if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
      return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
    }
    if (this.#isSilent && signal === 'siren' && seconds > 0) return SILENCED
    this.#set(signal, seconds, output)
    return writeResult(await this.#options.write(output, seconds > 0), 'while its time lasts')
  }

  /** Applies the state of an emergency. `open` holds the releasing output on; `silent` keeps the siren off. */
  async emergency(open: boolean, silent: boolean): Promise<CommandResult> {
    this.#isSilent = silent
    this.#version++
    const siren = this.#options.signals.get('siren')
    if (silent && siren !== undefined && this.#timers.has('siren')) {
      this.#set('siren', 0, siren)
      void this.#options.write(siren, false)
    }
    if (open && this.#options.release === undefined)
      return result('failed', false, 'not_supported', 'there is no output to open')
    return writeResult(await this.#hold.set(open), 'while the emergency lasts')
  }

  /** True while an emergency holds the releasing output open. Then the output stays on after a pulse. */
  get isHeldOpen(): boolean {
    return this.#hold.isOpen === true
  }

  /** Desired state of each output. Leaves out the releasing output while this output must keep its present state. */
  desired(): Map<number, boolean> {
    return this.#outputsNow(this.#pulses > 0 || this.#hold.isOpen === true)
  }

  /**
   * States that the driver writes after a connect. They never switch the releasing output on for a pulse that was
   * running before.
   */
  atConnect(): Map<number, boolean> {
    return this.#outputsNow(this.#hold.isOpen === true)
  }

  /**
   * Outputs to switch off when the agent stops. Leaves out a releasing output that an emergency holds open, or may hold
   * open.
   */
  toSwitchOff(): number[] {
    return [...this.#outputsNow(false).keys()].filter(
      (output) => output !== this.#options.release || this.#hold.isOpen === false,
    )
  }

  /** Increases with each change of a desired state. */
  get version(): number {
    return this.#version
  }

  /** Sets the desired state of the releasing output to on, until the returned function is called. */
  pulse(): Cancel {
    this.#pulses++
    this.#version++
    let done = false
    return () => {
      if (done) return
      done = true
      this.#pulses--
      this.#version++
    }
  }

  /** Sets all signals to off, and stops the repeated writes of an emergency. */
  allOff(): void {
    this.#hold.stop()
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
    this.#version++
  }

  #outputsNow(releaseOn: boolean): Map<number, boolean> {
    const { release, signals } = this.#options
    const isUntouched = release === undefined || (this.#hold.isOpen === undefined && !releaseOn)
    const all = new Map(isUntouched ? [] : [[release, releaseOn]])
    for (const [signal, output] of signals) all.set(output, this.#timers.has(signal))
    return all
  }

  #set(signal: Signal, seconds: number, output: number): void {
    this.#timers.get(signal)?.()
    this.#timers.delete(signal)
    this.#version++
    if (seconds === 0) return
    const onTimeout = () => {
      this.#timers.delete(signal)
      this.#version++
      void this.#options.write(output, false)
    }
    this.#timers.set(signal, this.#options.platform.timers.after(seconds * 1_000, onTimeout))
  }
}

/**
 * Signals of a device that has its own timer and ends them by itself. After a reconnect the driver writes the remaining
 * time again.
 */
export interface TimedSignals {
  signal(signal: Signal, seconds: number): Promise<CommandResult>
  /** Remaining time of each signal, ms; 0 for off. */
  due(): Map<Signal, number>
  /** Keeps the siren off, or allows it again. */
  silence(silent: boolean): Promise<CommandResult>
  /** Ends all signals without a write to the device. */
  allOff(): void
}

function switchResult(answer: SwitchAnswer): CommandResult {
  return writeResult(answer.kind === 'done' ? { kind: 'answered' } : answer, 'while its time lasts')
}

/** Makes the signals. `write` starts a signal for some ms, or ends it with 0. */
export function timedSignals(
  clock: Clock,
  signals: ReadonlySet<Signal>,
  write: (signal: Signal, ms: number) => Promise<SwitchAnswer>,
): TimedSignals {
  const until = new Map<Signal, number>()
  let isSilent = false

  return {
    async signal(signal, seconds) {
      if (!signals.has(signal)) {
        return result('failed', false, 'not_supported', `no ${signal} is configured; add "${signal}" to the settings`)
      }
      if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
        return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
      }
      if (isSilent && signal === 'siren' && seconds > 0) return SILENCED
      until.set(signal, clock.elapsed() + seconds * 1_000)
      return switchResult(await write(signal, seconds * 1_000))
    },
    async silence(silent) {
      isSilent = silent
      const isSounding = (until.get('siren') ?? 0) > clock.elapsed()
      if (!silent || !isSounding) return result('confirmed', false, 'acknowledged')
      until.delete('siren')
      return switchResult(await write('siren', 0))
    },
    due: () => new Map([...signals].map((signal) => [signal, Math.max(0, (until.get(signal) ?? 0) - clock.elapsed())])),
    allOff: () => until.clear(),
  }
}
