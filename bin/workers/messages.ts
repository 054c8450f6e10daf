/** Messages between the primary process and its workers. */

/** Fields of the ready line. */
export interface ReadyFields {
  baseUrl: string
  mqttUrl: string
}

/** From a worker to the primary process. */
export type FromWorker = { kind: 'online' } | { kind: 'serving'; ready: ReadyFields }

/** From the primary process to a worker. */
export type ToWorker =
  | { kind: 'start'; processId: string; port: number; mqttPort: number; formerRun: string | undefined }
  /** Another worker has ended. */
  | { kind: 'ended'; processId: string }
