import type { Cancel, Platform } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S, result } from './device.ts'
import type { CommandResult, Signal } from './device.ts'
import { holdOpen } from './hold-open.ts'
import { SILENCED, writeResult } from './write-answer.ts'
import type { WriteAnswer } from './write-answer.ts'

/**
 * What the outputs of one device shall be, over all connections. The releasing output is wanted off
 * except within a pulse and while an emergency holds it open; a signal is wanted on until its time is over. Whoever connects writes it
 * down to the board, and later looks whether it is still so.
 */
export interface WantedOutputs {
  /** Switches a signal on for some seconds, or off. */
  signal(signal: Signal, seconds: number): Promise<CommandResult>
  /** Holds the releasing output open, or not, and keeps the siren silent, or not. */
  emergency(open: boolean, silent: boolean): Promise<CommandResult>
  /** True while an emergency holds the releasing output open: no end of a pulse switches it off. */
  readonly isHeldOpen: boolean
  /** Every output with what it shall be now; without the releasing one while it is to be left as it is. */
  wanted(): Map<number, boolean>
  /** What a new connection writes: as `wanted`, but it never repeats the ON of a release. */
  atConnect(): Map<number, boolean>
  /** What the end of the agent switches off: not what an emergency holds open. */
  toSwitchOff(): number[]
  /** Grows with every change of `wanted`. */
  readonly version: number
  /** Marks the releasing output as wanted on, until the returned function is called. */
  pulse(): Cancel
  /** Everything off from now on. */
  allOff(): void
}

export interface OutputOptions {
  /** The releasing output, where the device has one. */
  readonly release: number | undefined
  readonly signals: ReadonlyMap<Signal, number>
  /** The setting: true if an emergency opens the releasing output. */
  readonly opensInEmergency: boolean | undefined
  /** What an output is called in the settings, such as `output` or `gpo`. */
  readonly setting: string
  readonly platform: Platform
  /** Writes to the device when there is one. Never rejects. */
  write(output: number, on: boolean): Promise<WriteAnswer>
}

/** Outputs that are written again until the board has them. */
export function wantedOutputs(options: OutputOptions): WantedOutputs {
  const { release, signals, setting, platform, write } = options
  const timers = new Map<Signal, Cancel>()
  let pulses = 0
  let version = 0
  let isSilent = false
  const hold = holdOpen({
    timers: platform.timers,
    waits: options.opensInEmergency === true,
    isPulsing: () => pulses > 0,
    write: (on) => (release === undefined ? Promise.resolve({ kind: 'answered' }) : write(release, on)),
  })

  function outputsNow(releaseOn: boolean): Map<number, boolean> {
    const isLeft = release === undefined || (hold.isOpen === undefined && !releaseOn)
    const all = new Map(isLeft ? [] : [[release, releaseOn]])
    for (const [signal, output] of signals) all.set(output, timers.has(signal))
    return all
  }

  function set(signal: Signal, seconds: number, output: number): void {
    timers.get(signal)?.()
    timers.delete(signal)
    version++
    if (seconds === 0) return
    const over = () => {
      timers.delete(signal)
      version++
      void write(output, false)
    }
    timers.set(signal, platform.timers.after(seconds * 1_000, over))
  }

  return {
    async signal(signal, seconds) {
      const output = signals.get(signal)
      if (output === undefined) {
        return result(
          'failed',
          false,
          'not_supported',
          `no ${signal} is configured; add "${signal}": { "${setting}": … }`,
        )
      }
      if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
        return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
      }
      if (isSilent && signal === 'siren' && seconds > 0) return SILENCED
      set(signal, seconds, output)
      return writeResult(await write(output, seconds > 0), 'while its time lasts')
    },
    async emergency(open, silent) {
      isSilent = silent
      version++
      const siren = signals.get('siren')
      if (silent && siren !== undefined && timers.has('siren')) {
        set('siren', 0, siren)
        void write(siren, false)
      }
      if (open && release === undefined) return result('failed', false, 'not_supported', 'there is no output to open')
      return writeResult(await hold.set(open), 'while the emergency lasts')
    },
    get isHeldOpen() {
      return hold.isOpen === true
    },
    wanted: () => outputsNow(pulses > 0 || hold.isOpen === true),
    atConnect: () => outputsNow(hold.isOpen === true),
    toSwitchOff() {
      return [...outputsNow(false).keys()].filter((output) => output !== release || hold.isOpen === false)
    },
    get version() {
      return version
    },
    pulse() {
      pulses++
      version++
      let done = false
      return () => {
        if (done) return
        done = true
        pulses--
        version++
      }
    },
    allOff() {
      hold.stop()
      for (const cancel of timers.values()) cancel()
      timers.clear()
      version++
    },
  }
}
