import type { MetricsOfProcess } from '../../cloud/service/monitoring/metrics.ts'
import type { SiblingMessage } from '../../cloud/platform/foundation/ports.ts'

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
