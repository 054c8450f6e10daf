import { readTrace } from '../../device-drivers/protocols/trace.ts'
import type { TraceRecord } from '../../device-drivers/protocols/trace.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'

/** A device that says again what was written down of one. */
export interface Replay {
  /** Connections in the trace; each that is served plays the next, and the last again and again. */
  readonly connections: number
  serve(link: ByteLink): Promise<void>
}

/** A driver that says less than the one in the trace is waited for so long, then the device goes on. */
const REQUEST_TIMEOUT_MS = 1_000
const NEVER_ABORTED = new AbortController().signal

function connectionsIn(records: readonly TraceRecord[]): TraceRecord[][] {
  const connections: TraceRecord[][] = []
  for (const record of records) {
    if (record.kind === 'open') connections.push([])
    else connections.at(-1)?.push(record)
  }
  return connections
}

/**
 * Plays the device's side of a trace. Each answer comes when as much has been asked as in the trace, and then as long after
 * it as there; so a driver on a slower or virtual clock hears the same.
 */
export function replay(trace: string, { clock, timers }: Platform): Replay {
  const connections = connectionsIn(readTrace(trace))
  let served = 0

  return {
    connections: connections.length,
    async serve(link) {
      const records = connections[Math.min(served++, connections.length - 1)] ?? []
      let received = 0
      let isOver = false
      let wake = () => {}
      const listening = (async () => {
        try {
          for await (const chunk of link.bytes) {
            received += chunk.length
            wake()
          }
        } catch {
          // The driver has cut the link.
        }
        isOver = true
        wake()
      })()

      /** Until the driver has sent so much, or has had its time. */
      async function untilReceived(bytes: number): Promise<void> {
        const from = clock.elapsed()
        while (received < bytes && !isOver && clock.elapsed() - from < REQUEST_TIMEOUT_MS) {
          const cancel = { now: () => {} }
          await new Promise<void>((resolve) => {
            wake = resolve
            cancel.now = timers.after(REQUEST_TIMEOUT_MS, resolve)
          })
          cancel.now()
        }
      }

      let expectedBytes = 0
      let before = records[0]?.atMs ?? 0
      for (const { kind, atMs, bytes } of records) {
        if (isOver) break
        if (kind === 'out') {
          expectedBytes += bytes.length
          await untilReceived(expectedBytes)
        } else {
          await pause(timers, Math.max(0, atMs - before))
          if (kind === 'in') await link.write(bytes, NEVER_ABORTED).catch(() => {})
        }
        before = atMs
      }
      await link.close()
      await listening
    },
  }
}
