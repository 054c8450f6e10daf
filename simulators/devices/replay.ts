import { readTrace, type TraceRecord } from '../../device-drivers/kit/protocol/codec.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'

/** A device that replays a recorded trace. */
interface Replay {
  /**
   * Number of connections in the trace. Each served link replays the next connection; further links repeat the last
   * connection.
   */
  readonly connections: number
  serve(link: ByteLink): Promise<void>
}

/** Time that the replay waits for the missing bytes of a request, ms. */
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
 * Replays the device's side of a trace. Before each answer, the replay waits until it has received as many bytes as the
 * device had received in the trace. Then it waits for the delay in the trace. Therefore a replay also works for drivers
 * on slower or virtual clocks.
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
          // The driver closed the link.
        }
        isOver = true
        wake()
      })()

      /** Waits until the driver has sent this many bytes, or the time limit is reached. */
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
