import type { Cancel, Timers } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemProgress, StoredRow } from './item-file.ts'
import type { ItemLabels } from './item-labels.ts'

/**
 *   rows queued ─ 50 ms ─▶ written with the number they reach
 *                  └ the disk fails ─▶ retried every minute ─ too many rows ─▶ stops: writes nothing until all items are fetched again
 */

const FLUSH_MS = 50
/** Delay before a failed write is retried, ms. */
const RETRY_MS = 60_000
/** Rows of one commit: about a millisecond, in which no tag is looked up. */
const ROWS_AT_ONCE = 300
/** So many wait for the disk at most; beyond, it is waited for. */
const WAITING_LIMIT = 50_000

/** Rows of one entry: they reach the disk together. */
interface Waiting {
  seq: number
  rows: readonly StoredRow[]
}

export interface ItemWriterParts {
  disk: Pick<ItemFile, 'write' | 'clear' | 'close'>
  timers: Timers
  log: Log
  labels: ItemLabels
  /** How far the replica has come in memory. */
  progress(): ItemProgress
}

/** Writes the replica to its file, in batches, after the memory has changed. */
export class ItemWriter {
  readonly #parts: ItemWriterParts
  #waiting: Waiting[] = []
  #timer: Cancel | undefined
  /** The last write did not succeed. */
  #isFailing = false
  /** Too much waited for the disk: nothing is written any more. */
  #isGivenUp = false
  /** What is on the disk is of a sequence that was left behind. */
  #isClearDue = false
  #isProgressDirty = false

  constructor(parts: ItemWriterParts) {
    this.#parts = parts
  }

  add(seq: number, rows: readonly StoredRow[]): void {
    if (!this.#isGivenUp) this.#waiting.push({ seq, rows })
  }

  /** Writes the added rows soon; at once if too many wait. */
  schedule(): void {
    while (this.#waiting.length > WAITING_LIMIT) if (!this.#flushSome()) this.#stopWriting()
    this.#flushLater()
  }

  /** The replica is complete at a later time: its mark is written. */
  noteConfirmed(): void {
    this.#isProgressDirty = true
    this.#flushLater()
  }

  /** Empties the replica, because another sequence starts. */
  clear(): void {
    this.#waiting = []
    this.#isGivenUp = false
    this.#isClearDue = true
    if (!this.#clearDisk()) this.#flushLater()
  }

  close(): void {
    this.#timer?.()
    const isDue = () => !this.#isGivenUp && (this.#waiting.length > 0 || this.#isProgressDirty || this.#isClearDue)
    while (isDue() && this.#flushSome());
    this.#parts.disk.close()
  }

  #flushLater(): void {
    if (this.#isGivenUp) return
    this.#timer ??= this.#parts.timers.after(this.#isFailing ? RETRY_MS : FLUSH_MS, () => {
      this.#timer = undefined
      if (this.#isGivenUp) return
      this.#flushSome()
      if (this.#waiting.length > 0 || this.#isFailing) this.#flushLater()
    })
  }

  /** Writes the oldest that wait, with the number they reach. Whether that worked. */
  #flushSome(): boolean {
    if (!this.#clearDisk()) return false
    const { disk, labels, progress } = this.#parts
    const count = this.#countAtOnce()
    const entries = this.#waiting.slice(0, count)
    const mark = progress()
    const ver = count === this.#waiting.length ? mark.ver : (entries.at(-1)?.seq ?? mark.ver)
    const rows = entries.flatMap((entry) => entry.rows)
    if (!this.#persisting(() => disk.write(rows, { ...mark, ver }, labels.all))) return false
    this.#waiting = this.#waiting.slice(count)
    this.#isProgressDirty = false
    return true
  }

  /** How many entries one commit takes. */
  #countAtOnce(): number {
    let count = 0
    for (let rows = 0; count < this.#waiting.length && rows < ROWS_AT_ONCE; count++)
      rows += this.#waiting[count]?.rows.length ?? 0
    return count
  }

  /** Returns false if the disk still holds the former sequence. */
  #clearDisk(): boolean {
    if (!this.#isClearDue) return true
    const { disk, progress } = this.#parts
    if (this.#persisting(() => disk.clear({ ...progress(), ver: 0 }))) this.#isClearDue = false
    return !this.#isClearDue
  }

  /**
   * Returns true if the disk accepted the write. If not, gates use the items in memory, and the file stays valid at its own older number.
   */
  #persisting(work: () => void): boolean {
    const { log } = this.#parts
    try {
      work()
    } catch (error) {
      if (!this.#isFailing)
        log.warn({ err: error }, 'items cannot be written to the disk: the agent retries every minute')
      this.#isFailing = true
      return false
    }
    if (this.#isFailing) log.info({ waiting: this.#waiting.length }, 'items are written to the disk again')
    this.#isFailing = false
    return true
  }

  #stopWriting(): void {
    this.#isGivenUp = true
    this.#waiting = []
    this.#parts.log.error({}, 'items are no longer written to the disk: the agent fetches them again after a restart')
  }
}
