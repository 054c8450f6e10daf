import { openStoreProcesses, type StoreOptions, type StoreProcesses } from '../verification/kills/store-processes.ts'
import type { Json } from './cloud.ts'
import { runCommand } from './commands.ts'
import { processesOfTests } from './processes.ts'

export { eventually } from '../verification/kills/store-processes.ts'

/** A running store with JSON responses of type any. */
export interface Journey extends StoreProcesses {
  products: Json[]
  local(path: string, body: Json, headers?: Record<string, string>): Promise<{ status: number; body: Json }>
  authorize(body: Json): Promise<Json>
  status(): Promise<Json>
  events(filter?: Json): Promise<Json[]>
}

export function openJourney(options: Omit<StoreOptions, 'processes'>): Promise<Journey> {
  const { start, run } = processesOfTests
  // Commands that end need no process of their own, unless their environment is another one.
  const processes = {
    start,
    run: (args: readonly string[], env?: NodeJS.ProcessEnv) => (env ? run(args, env) : runCommand(args)),
  }
  return openStoreProcesses({ ...options, processes })
}
