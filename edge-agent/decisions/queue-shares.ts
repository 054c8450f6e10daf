import type { Clock } from '../../policy/platform.ts'
import type { Journal } from '../ledger/journal/journal.ts'

/** Rows that may wait for the cloud. 72 hours of a large store are 100,000 sales. */
const WAITING_LIMIT = 300_000
/** Their bytes: 72 hours of a large store are 0.5 GB. */
export const WAITING_BYTES_LIMIT = 2_000_000_000
/** Part of both that one program may fill, so that a broken or stolen one does not stop the other tills. */
const SHARE = 0.5
/** Bytes of rows of one program in an hour: 50,000 usual sales. The ledger keeps them for weeks. */
const HOUR_BYTES_LIMIT = 100_000_000
const HOUR_MS = 3_600_000
/** Free space that tills leave for releases, bytes. */
const ROOM_BYTES = 256 * 1_048_576
const ROOM_CHECK_MS = 5_000

interface Amount {
  rows: number
  bytes: number
}

interface QueueSharesParts {
  journal: Pick<Journal, 'waiting' | 'waitingBytes' | 'acked' | 'head'>
  clock: Pick<Clock, 'elapsed'>
  /** Free space of the disk, bytes. Absent: unknown. */
  freeBytes?: (() => Promise<number>) | undefined
}

/**
 * Limits the rows of tills that the ledger takes, with a share for each program, so that neither the other tills nor the
 * releases of goods stop. After a restart it counts again.
 */
export class QueueShares {
  readonly #parts: QueueSharesParts
  /** What programs reported since row `#from`, and in the time before. It all counts until the cloud has that row. */
  #now = new Map<string, Amount>()
  #before = new Map<string, Amount>()
  #from = 0
  /** Bytes of this hour. */
  readonly #hour = new Map<string, number>()
  #hourMs = 0
  #roomMs = Number.NEGATIVE_INFINITY
  #hasRoom = true

  constructor(parts: QueueSharesParts) {
    this.#parts = parts
  }

  /** Returns why a program may report no more now, or undefined. */
  whyFull(program: string): string | undefined {
    const { waiting, waitingBytes, acked, head } = this.#parts.journal
    if (acked >= this.#from) [this.#before, this.#now, this.#from] = [this.#now, new Map<string, Amount>(), head.seq]
    this.#look()
    if (!this.#hasRoom) return 'the disk is almost full, and the rest is for releases: make room on it'
    if (waiting >= WAITING_LIMIT) return `${WAITING_LIMIT} rows wait for the cloud: connect this agent`
    if (waitingBytes >= WAITING_BYTES_LIMIT)
      return `${WAITING_BYTES_LIMIT} bytes wait for the cloud: connect this agent`
    if ((this.#hour.get(program) ?? 0) >= HOUR_BYTES_LIMIT)
      return `this program has sent ${HOUR_BYTES_LIMIT} bytes within an hour: send less`
    const own = [this.#now.get(program), this.#before.get(program)]
    const sum = (of: (amount: Amount) => number) => own.reduce((all, each) => all + (each ? of(each) : 0), 0)
    const isFull =
      sum(({ rows }) => rows) >= WAITING_LIMIT * SHARE || sum(({ bytes }) => bytes) >= WAITING_BYTES_LIMIT * SHARE
    return isFull ? 'half of what may wait for the cloud is of this program: connect this agent' : undefined
  }

  /** Runs a report of a program, and counts its rows. */
  count<T>(program: string, report: () => T): T {
    const { journal } = this.#parts
    const before = { rows: journal.waiting, bytes: journal.waitingBytes }
    const answer = report()
    const own = { rows: journal.waiting - before.rows, bytes: journal.waitingBytes - before.bytes }
    const { rows, bytes } = this.#now.get(program) ?? { rows: 0, bytes: 0 }
    this.#now.set(program, { rows: rows + own.rows, bytes: bytes + own.bytes })
    this.#hour.set(program, (this.#hour.get(program) ?? 0) + own.bytes)
    return answer
  }

  /** Begins an hour, and asks for the room on the disk. The next report has its answer. */
  #look(): void {
    const { clock, freeBytes } = this.#parts
    const nowMs = clock.elapsed()
    if (nowMs >= this.#hourMs + HOUR_MS) {
      this.#hour.clear()
      this.#hourMs = nowMs
    }
    if (!freeBytes || nowMs < this.#roomMs + ROOM_CHECK_MS) return
    this.#roomMs = nowMs
    freeBytes().then(
      (bytes) => (this.#hasRoom = bytes >= ROOM_BYTES),
      () => undefined,
    )
  }
}
