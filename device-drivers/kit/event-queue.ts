import type { DeviceEvent, TagRead } from './device.ts'
import type { Clock } from '../../policy/platform.ts'

const MAX_REMEMBERED = 32

/**
 * Makes a function that returns true if it has accepted the same text less than `withinMs` ago. Presentation scanners
 * read a code again and again while the code is in view.
 */
export function repeatFilter(clock: Clock, withinMs: number): (text: string) => boolean {
  const seen = new Map<string, number>()

  return (text) => {
    const now = clock.elapsed()
    const last = seen.get(text)
    if (last !== undefined && now - last < withinMs) return true
    seen.delete(text)
    seen.set(text, now)
    if (seen.size > MAX_REMEMBERED)
      for (const oldest of [...seen.keys()].slice(0, seen.size - MAX_REMEMBERED)) seen.delete(oldest)
    return false
  }
}

const MAX_WAITING = 1_000
/** Maximum reads in one event; `DeviceEvent` documents the same limit. */
const MAX_READS = 1_000
/**
 * Maximum tag reads that wait. A gate reads up to 1,500 tags a second, and a reader may replay tens of thousands after
 * a network failure. 100,000 reads are about a minute of reading and 15 MB.
 */
const MAX_READS_WAITING = 100_000

interface TagBatch {
  readonly type: 'tags'
  readonly reads: TagRead[]
}

/**
 * Events of a device that wait for their consumer: at most 1,000 events and 100,000 tag reads. A full queue drops its
 * oldest entries and reports their number in a `fault`. Consecutive reads share one event, because a burst of reads must
 * not displace other events.
 */
export class EventQueue {
  #waiting: DeviceEvent[] = []
  #open: TagBatch | null = null
  #reads = 0
  #droppedEvents = 0
  #droppedReads = 0
  #ended = false
  #wake = () => {}
  readonly events: AsyncIterable<DeviceEvent> = { [Symbol.asyncIterator]: () => this.#read() }

  /** An arrow function, because drivers pass it as a callback. */
  readonly put = (event: DeviceEvent): void => {
    if (this.#ended) return
    if (event.type === 'emergency') return this.#pushFirst(event)
    if (event.type === 'tags') return this.putReads(event.reads)
    this.#open = null
    this.#push(event)
  }

  /** Adds tag reads to the last waiting event of reads, or to new events. */
  putReads(more: readonly TagRead[]): void {
    if (this.#ended) return
    for (const read of more) {
      if (!this.#open || this.#open.reads.length >= MAX_READS) {
        this.#open = { type: 'tags', reads: [] }
        this.#push(this.#open)
      }
      this.#open.reads.push(read)
      this.#reads++
      if (this.#reads > MAX_READS_WAITING) this.#dropAt(this.#waiting.findIndex((event) => event.type === 'tags'))
    }
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  *#losses(): Generator<DeviceEvent, void> {
    const lost = [
      ...(this.#droppedEvents > 0 ? [`${this.#droppedEvents} events`] : []),
      ...(this.#droppedReads > 0 ? [`${this.#droppedReads} tag reads`] : []),
    ]
    this.#droppedEvents = 0
    this.#droppedReads = 0
    if (lost.length > 0)
      yield { type: 'fault', detail: `${lost.join(' and ')} were lost because the agent did not read them in time` }
  }

  async *#read(): AsyncGenerator<DeviceEvent, void> {
    for (;;) {
      const batch = this.#waiting
      this.#waiting = []
      this.#open = null
      this.#reads = 0
      yield* this.#losses()
      yield* batch
      if (this.#waiting.length > 0) continue
      if (this.#ended) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #dropAt(index: number): void {
    const [dropped] = this.#waiting.splice(index, 1)
    if (dropped?.type !== 'tags') return void this.#droppedEvents++
    this.#droppedReads += dropped.reads.length
    this.#reads -= dropped.reads.length
    if (dropped === this.#open) this.#open = null
  }

  #push(event: DeviceEvent): void {
    if (this.#waiting.length >= MAX_WAITING) this.#dropAt(this.#waiting[0]?.type === 'emergency' ? 1 : 0)
    this.#waiting.push(event)
    this.#wake()
  }

  /**
   * Puts an emergency event first and removes an older emergency event. A flood of tags must not delay or displace the
   * emergency event.
   */
  #pushFirst(event: DeviceEvent): void {
    this.#waiting = [event, ...this.#waiting.filter(({ type }) => type !== 'emergency')]
    this.#wake()
  }
}
