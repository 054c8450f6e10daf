import type { DeviceEvent, TagRead } from './device.ts'

/** Events on their way to one reader. */
export interface EventQueue {
  put(event: DeviceEvent): void
  /** Tag reads, in any number; those that nobody has taken yet travel together. */
  putReads(reads: readonly TagRead[]): void
  end(): void
  readonly events: AsyncIterable<DeviceEvent>
}

const MOST_WAITING = 1_000
/** In one event (device.ts). */
const MOST_READS = 1_000
/**
 * Reads that wait in all. A gate reads up to 1,500 tags a second and its reader may replay tens of thousands when the
 * network is back: this is a minute of the one and more than the other, and about 15 MB.
 */
const MOST_READS_WAITING = 100_000

interface TagBatch {
  readonly type: 'tags'
  readonly reads: TagRead[]
}

/**
 * Holds at most 1,000 events and 100,000 tag reads; when nobody takes them the oldest go, and a `fault` says how many.
 * Reads that follow each other are put into one event, so that a burst of them pushes nothing else out.
 */
export function eventQueue(): EventQueue {
  let waiting: DeviceEvent[] = []
  let open: TagBatch | null = null
  let reads = 0
  let droppedEvents = 0
  let droppedReads = 0
  let ended = false
  let wake = () => {}

  function* losses(): Generator<DeviceEvent, void> {
    const lost = [
      ...(droppedEvents > 0 ? [`${droppedEvents} events`] : []),
      ...(droppedReads > 0 ? [`${droppedReads} tag reads`] : []),
    ]
    droppedEvents = 0
    droppedReads = 0
    if (lost.length > 0)
      yield { type: 'fault', detail: `${lost.join(' and ')} were lost because nobody took them in time` }
  }

  async function* read(): AsyncGenerator<DeviceEvent, void> {
    for (;;) {
      const batch = waiting
      waiting = []
      open = null
      reads = 0
      yield* losses()
      yield* batch
      if (waiting.length > 0) continue
      if (ended) return
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  function dropAt(index: number): void {
    const [gone] = waiting.splice(index, 1)
    if (gone?.type !== 'tags') return void droppedEvents++
    droppedReads += gone.reads.length
    reads -= gone.reads.length
    if (gone === open) open = null
  }

  function push(event: DeviceEvent): void {
    if (waiting.length >= MOST_WAITING) dropAt(waiting[0]?.type === 'emergency' ? 1 : 0)
    waiting.push(event)
    wake()
  }

  function putReads(more: readonly TagRead[]): void {
    if (ended) return
    for (const one of more) {
      if (!open || open.reads.length >= MOST_READS) {
        open = { type: 'tags', reads: [] }
        push(open)
      }
      open.reads.push(one)
      reads++
      if (reads > MOST_READS_WAITING) dropAt(waiting.findIndex((event) => event.type === 'tags'))
    }
  }

  /** Ahead of everything else, and only the newest: no flood of tags delays it or drops it. */
  function pushFirst(event: DeviceEvent): void {
    waiting = [event, ...waiting.filter(({ type }) => type !== 'emergency')]
    wake()
  }

  return {
    put(event) {
      if (ended) return
      if (event.type === 'emergency') return pushFirst(event)
      if (event.type === 'tags') return putReads(event.reads)
      open = null
      push(event)
    },
    putReads,
    end() {
      ended = true
      wake()
    },
    events: { [Symbol.asyncIterator]: read },
  }
}
