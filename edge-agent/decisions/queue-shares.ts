import type { Journal } from '../ledger/journal/journal.ts'

/** Rows that may wait for the cloud. 72 hours of a large store are 100,000 sales. */
const WAITING_LIMIT = 300_000
/** Their bytes: 72 hours of a large store are 0.5 GB. */
export const WAITING_BYTES_LIMIT = 2_000_000_000
/** Part of both that one program may fill, so that a broken or stolen one does not stop the other tills. */
const SHARE = 0.5

type Waiting = Pick<Journal, 'waiting' | 'waitingBytes' | 'acked' | 'head'>

interface Amount {
  rows: number
  bytes: number
}

/** Limits the rows of tills that wait for the cloud, with a share for each program. After a restart it counts again. */
export class QueueShares {
  readonly #journal: Waiting
  /** What programs reported since row `#from`, and in the time before. It all counts until the cloud has that row. */
  #now = new Map<string, Amount>()
  #before = new Map<string, Amount>()
  #from = 0

  constructor(journal: Waiting) {
    this.#journal = journal
  }

  /** Returns why a program may report no more now, or undefined. */
  whyFull(program: string): string | undefined {
    const { waiting, waitingBytes, acked, head } = this.#journal
    if (acked >= this.#from) [this.#before, this.#now, this.#from] = [this.#now, new Map<string, Amount>(), head.seq]
    if (waiting >= WAITING_LIMIT) return `${WAITING_LIMIT} rows wait for the cloud: connect this agent`
    if (waitingBytes >= WAITING_BYTES_LIMIT)
      return `${WAITING_BYTES_LIMIT} bytes wait for the cloud: connect this agent`
    const own = [this.#now.get(program), this.#before.get(program)]
    const sum = (of: (amount: Amount) => number) => own.reduce((all, each) => all + (each ? of(each) : 0), 0)
    const isFull =
      sum(({ rows }) => rows) >= WAITING_LIMIT * SHARE || sum(({ bytes }) => bytes) >= WAITING_BYTES_LIMIT * SHARE
    return isFull ? 'half of what may wait for the cloud is of this program: connect this agent' : undefined
  }

  /** Runs a report of a program, and counts its rows. */
  count<T>(program: string, report: () => T): T {
    const { waiting, waitingBytes } = this.#journal
    const answer = report()
    const { rows, bytes } = this.#now.get(program) ?? { rows: 0, bytes: 0 }
    this.#now.set(program, {
      rows: rows + this.#journal.waiting - waiting,
      bytes: bytes + this.#journal.waitingBytes - waitingBytes,
    })
    return answer
  }
}
