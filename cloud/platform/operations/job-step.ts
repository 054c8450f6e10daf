import type { Database } from '../persistence/database.ts'
import type { Call, Services } from './operation.ts'
import { yieldToEventLoop } from './process-each.ts'

/** What a step of a job and an operation have in common. */
export type JobCall = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/**
 * Runs one step of a job in a transaction, and what it announces after the commit. A step does a limited number of
 * statements, because other accounts wait for it. `holder`: the account that the step works for.
 */
export async function runJobStep<T>(
  { database, services, holder }: { database: Database; services: Services; holder: string },
  run: (call: JobCall) => Promise<T>,
): Promise<T> {
  let announced: (() => void | Promise<void>)[] = []
  const result = await database.write(
    (db) => {
      // A transaction may run again after a conflict.
      announced = []
      const afterCommit: Call['afterCommit'] = (task) => void announced.push(task)
      return run({ db, services, nowMs: services.platform.clock.wall(), afterCommit })
    },
    { holder },
  )
  for (const announce of announced) await announce()
  // Before the next step, requests that came meanwhile run.
  await yieldToEventLoop()
  return result
}
