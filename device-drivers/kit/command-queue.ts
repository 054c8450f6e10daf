import { result } from './device.ts'
import type { CommandResult } from './device.ts'

/** A running command. The outcome may be known before the command has finished. Neither promise rejects. */
export interface RunningCommand {
  readonly outcome: Promise<CommandResult>
  readonly finished: Promise<unknown>
}

/** Runs the commands of one device one after the other. */
export interface CommandQueue {
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
