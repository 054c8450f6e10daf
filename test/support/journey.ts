import { openStoreProcesses, type StoreOptions, type StoreProcesses } from '../../verification/kills/store-processes.ts'
import type { Json } from './cloud.ts'
import { processesOfTests } from './processes.ts'

export { eventually } from '../../verification/kills/store-processes.ts'

/** A running store with JSON responses of type any. */
export interface Journey extends StoreProcesses {
  products: Json[]
  local(path: string, body: Json, headers?: Record<string, string>): Promise<{ status: number; body: Json }>
  authorize(body: Json): Promise<Json>
  status(): Promise<Json>
  events(filter?: Json): Promise<Json[]>
}

export function openJourney(options: Omit<StoreOptions, 'processes'>): Promise<Journey> {
  return openStoreProcesses({ ...options, processes: processesOfTests })
}
