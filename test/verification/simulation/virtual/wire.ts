import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** A connection between a machine and the cloud, with its current faults. */
export interface Wire {
  /** Faults of single messages. */
  messageFaults: MessageFaults
  /** Stops all messages. Open connections end, at once or after a timeout. */
  cut(): void
  /** From now on, messages to the cloud arrive, but messages from the cloud are lost. */
  halfOpen(): void
  restore(): void
  readonly state: 'up' | 'cut' | 'half-open'
  /** Delivers a message late, twice or not at all. `isBack` is true for messages from the cloud to the machine. */
  carry(isBack: boolean, deliver: () => void): void
  /** Adds a listener for cuts. */
  onCut(listener: () => void): void
}

export interface MessageFaults {
  /** Probability that a message is lost, and probability that it arrives twice. */
  lose: number
  twice: number
  /** Maximum delay of most messages, ms. `slow` is the probability of a delay of up to `slowMs`. */
  delayMs: number
  slow: number
  slowMs: number
}

export const NO_MESSAGE_FAULTS: MessageFaults = { lose: 0, twice: 0, delayMs: 5, slow: 0, slowMs: 0 }

/** Creates a working connection without faults. */
export function newWire(name: string, { scheduler, chance: world }: { scheduler: Scheduler; chance: Chance }): Wire {
  const chance = world.fork(`wire ${name}`)
  const listeners: (() => void)[] = []
  let messageFaults = NO_MESSAGE_FAULTS
  let state: Wire['state'] = 'up'

  const passes = (isBack: boolean) => state === 'up' || (state === 'half-open' && !isBack)
  const delay = () =>
    chance.happens(messageFaults.slow)
      ? chance.between(1, messageFaults.slowMs)
      : chance.between(1, messageFaults.delayMs)

  return {
    get messageFaults() {
      return messageFaults
    },
    set messageFaults(to) {
      messageFaults = to
    },
    get state() {
      return state
    },
    cut() {
      state = 'cut'
      for (const listener of listeners) listener()
    },
    halfOpen: () => void (state = 'half-open'),
    restore: () => void (state = 'up'),
    carry(isBack, deliver) {
      if (!passes(isBack) || chance.happens(messageFaults.lose)) return
      const times = chance.happens(messageFaults.twice) ? 2 : 1
      for (let n = 0; n < times; n++) {
        scheduler.after(delay(), () => {
          if (passes(isBack)) deliver()
        })
      }
    },
    onCut: (listener) => void listeners.push(listener),
  }
}
