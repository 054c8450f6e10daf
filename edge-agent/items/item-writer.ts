import type { Cancel, Timers } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemProgress, StoredRow } from './item-file.ts'
import type { ItemLabel } from './item-table.ts'

const FLUSH_MS = 50
/**
 * Delay before a new `confirmedMs` alone is written, ms. The cloud confirms the items every 15 s, and each write wears
 * an SD card. After a crash the items count as at most this much older.
 */
const CONFIRMED_MS = 300_000
/** Delay before a failed write is retried, ms. */
const RETRY_MS = 60_000
/**
 * Rows in a full commit. The last entry of a commit may exceed this number by a few rows. A commit blocks the agent for
 * about 1 ms.
 */
const ROWS_AT_ONCE = 300
/**
 * Maximum queued entries. If more entries wait, the writer writes at once, and the agent does nothing else meanwhile.
 */
const WAITING_LIMIT = 50_000

const NONE: readonly string[] = []

/** Rows of one item entry. One commit writes all these rows. */
interface Waiting {
  seq: number
  rows: readonly StoredRow[]
}

interface ItemWriterParts {
  disk: Pick<ItemFile, 'write' | 'clear' | 'close' | 'othersOf'>
  timers: Timers
  log: Log
  labels: { readonly all: readonly ItemLabel[] }
  /** Position of the replica in memory. */
  progress(): ItemProgress
}

/**
 * Writes the replica to its file, in batches, after the memory has changed. Each commit also stores the number of the
 * last entry in the commit. If the disk fails, the writer retries every minute. If too many entries wait for a
 * failing disk, the writer writes nothing until the agent fetches all items again.
 */
export class ItemWriter {
  readonly #parts: ItemWriterParts
  #waiting: Waiting[] = []
  /** The other names of waiting rows. */
  readonly #others = new Map<string, readonly string[]>()
  #timer: Cancel | undefined
  #confirmedTimer: Cancel | undefined
  /** True if the last write failed. */
  #isFailing = false
  /** True after too many entries waited for a failing disk. Then the writer writes nothing until `clear`. */
  #isGivenUp = false
  /** True while the file still contains items from before the cloud's item sequence started again. */
  #isClearDue = false
  #isProgressDirty = false

  constructor(parts: ItemWriterParts) {
    this.#parts = parts
  }

  add(seq: number, rows: readonly StoredRow[]): void {
    if (this.#isGivenUp) return
    this.#waiting.push({ seq, rows })
    for (const { name, others = NONE } of rows) this.#others.set(name, others)
  }

  /** The other names of an item, on the disk or on their way there. */
  othersOf(key: string): readonly string[] {
    return this.#others.get(key) ?? this.#parts.disk.othersOf(key)
  }

  /** Writes the added rows soon, or at once if too many rows wait. */
  schedule(): void {
    while (this.#waiting.length > WAITING_LIMIT) if (!this.#flushSome()) this.#stopWriting()
    this.#flushLater()
  }

  /**
   * Call it after `confirmedMs` has changed. Writes the progress with the next rows, or within five minutes; at once if the
   * replica was never complete before.
   */
  noteConfirmed(isFirst: boolean): void {
    this.#isProgressDirty = true
    if (isFirst) return this.#flushLater()
    this.#confirmedTimer ??= this.#parts.timers.after(CONFIRMED_MS, () => {
      this.#confirmedTimer = undefined
      if (this.#isProgressDirty) this.#flushLater()
    })
  }

  /** Deletes all items from the file, because a new sequence starts. */
  clear(): void {
    this.#forgetWaiting()
    this.#isGivenUp = false
    this.#isClearDue = true
    if (!this.#clearDisk()) this.#flushLater()
  }

  close(): void {
    this.#timer?.()
    this.#confirmedTimer?.()
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

  /**
   * Writes the oldest queued entries, and the number of the last of these entries, in one commit. Returns false if
   * the write failed.
   */
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
    // A newer row of the same name, with other names, may still wait.
    for (const { name, others = NONE } of rows) if (this.#others.get(name) === others) this.#others.delete(name)
    this.#isProgressDirty = false
    return true
  }

  /** Number of queued entries for the next commit. */
  #countAtOnce(): number {
    let count = 0
    for (let rows = 0; count < this.#waiting.length && rows < ROWS_AT_ONCE; count++)
      rows += this.#waiting[count]?.rows.length ?? 0
    return count
  }

  /**
   * Deletes the items of the former sequence, if the file still contains them. Returns false if the deletion failed.
   */
  #clearDisk(): boolean {
    if (!this.#isClearDue) return true
    const { disk, progress } = this.#parts
    if (this.#persisting(() => disk.clear({ ...progress(), ver: 0 }))) this.#isClearDue = false
    return !this.#isClearDue
  }

  /**
   * Runs a write. Returns false if the write failed. Gates then use the items in memory, and the file keeps its
   * older, valid content.
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

  #forgetWaiting(): void {
    this.#waiting = []
    this.#others.clear()
  }

  #stopWriting(): void {
    this.#isGivenUp = true
    this.#forgetWaiting()
    this.#parts.log.error({}, 'items are no longer written to the disk: the agent fetches them again after a restart')
  }
}
