import type { MetricsOfProcess } from '../../cloud/service/monitoring/metrics.ts'
import type { SiblingMessage, Siblings } from '../../cloud/platform/foundation/ports.ts'
import { isOfRun } from '../data-folder.ts'

/** Messages between the primary process and its workers. */

/** Fields of the line that begins with `ready`, which the program prints when it serves requests. */
export interface ReadyFields {
  baseUrl: string
  mqttUrl: string
}

/** From a worker to the primary process. */
export type FromWorker =
  | { kind: 'online' }
  | { kind: 'serving'; ready: ReadyFields }
  /** The primary process passes the message on to all other workers. */
  | { kind: 'sibling'; message: SiblingMessage }
  /** Answer to the request with this number. */
  | { kind: 'metrics'; request: number; metrics: MetricsOfProcess }

/** From the primary process to a worker. */
export type ToWorker =
  | { kind: 'start'; processId: string; port: number; mqttPort: number; formerRun: string | undefined }
  /** All workers will stop. The worker reports this at `/readyz`, so that load balancers send no more requests. */
  | { kind: 'leave' }
  /** Another worker has ended. */
  | { kind: 'ended'; processId: string }
  /** From another worker. */
  | { kind: 'sibling'; message: SiblingMessage }
  /** Requests the metrics of this worker. */
  | { kind: 'metrics'; request: number }

/** Maximum number of ended processes that a worker remembers. */
const ENDED_LIMIT = 1_000

/** What a worker does at messages of the primary process. */
interface WorkerCalls {
  /** Another worker has ended. */
  onEnded(): void
  /** All workers will stop soon. */
  onLeave(): void
  /** Collects the metrics of this worker, if the cloud serves metrics. */
  collectMetrics?(): Promise<MetricsOfProcess>
}

/** What a new worker gets from the primary process: its settings, and calls to the primary process. */
interface WorkerStart {
  readonly processId: string
  readonly port: number
  readonly mqttPort: number
  /** The other workers. */
  readonly siblings: Siblings
  /** True if the process with this id has ended. */
  hasEnded(processId: string): boolean
  /** Tells the primary process that this worker serves. */
  serving(ready: ReadyFields, calls: WorkerCalls): void
}

/** Waits for the start message. If the primary process ends, Node.js ends this worker. */
export function startOfWorker(): Promise<WorkerStart> {
  // A closed terminal sends SIGHUP to all processes. The workers ignore SIGHUP, because the primary process decides
  // what follows.
  process.on('SIGHUP', () => undefined)
  const ended = new Set<string>()
  let calls: WorkerCalls = { onEnded: () => undefined, onLeave: () => undefined }
  const handlers: ((message: SiblingMessage) => void)[] = []
  const siblings: Siblings = {
    send: (message) => tell({ kind: 'sibling', message }),
    subscribe: (handle) => void handlers.push(handle),
  }
  return new Promise((resolve) => {
    process.on('message', (message: ToWorker) => {
      if (message.kind === 'ended') {
        remember(ended, message.processId)
        calls.onEnded()
        return
      }
      if (message.kind === 'leave') return calls.onLeave()
      if (message.kind === 'sibling') {
        for (const handle of handlers) handle(message.message)
        return
      }
      if (message.kind === 'metrics') {
        void answerMetrics(message.request, calls)
        return
      }
      const { processId, port, mqttPort, formerRun } = message
      resolve({
        processId,
        port,
        mqttPort,
        siblings,
        hasEnded: (id) => ended.has(id) || isOfRun(id, formerRun),
        serving(ready, made) {
          calls = made
          tell({ kind: 'serving', ready })
        },
      })
    })
    tell({ kind: 'online' })
  })
}

/** Without an answer, the primary process leaves this worker out. */
async function answerMetrics(request: number, { collectMetrics }: WorkerCalls): Promise<void> {
  const metrics = await collectMetrics?.().catch(() => undefined)
  if (metrics) tell({ kind: 'metrics', request, metrics })
}

function tell(message: FromWorker): void {
  // The primary process may have just ended; Node.js then ends this worker.
  process.send?.(message, () => undefined)
}

function remember(ended: Set<string>, processId: string): void {
  const [oldest] = ended
  if (ended.size >= ENDED_LIMIT && oldest !== undefined) ended.delete(oldest)
  ended.add(processId)
}
