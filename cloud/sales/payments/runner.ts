import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import type { Call, Operation, Services, StepContext } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'

/**
 * Runs work that needs several transactions with requests to a provider between them. Its callers are operations with
 * several transactions, notifications of providers, and jobs.
 */
export interface Runner {
  readonly services: Services
  /** Reads committed data. */
  read<T>(look: (db: Db) => Promise<T>): Promise<T>
  /** One transaction with its events. */
  step<T>(change: (call: Call) => Promise<T>): Promise<T>
}

/** Runs the work within an operation of several transactions. */
export function runnerOf(work: StepContext): Runner {
  return {
    services: work.services,
    read: (look) => work.read((call) => look(call.db)),
    step: (change) => work.step(change),
  }
}

/** Thrown to roll back a step that changed nothing. */
class NothingChanged extends Error {
  override name = 'NothingChanged'
}

/**
 * Runs work without a caller, for this tenant and under the name of this operation. Rolls back a step that returns
 * undefined.
 */
export function taskRunner(operation: Operation, tenant: Tenant, database: Database, services: Services): Runner {
  const caller = systemCaller(tenant, 'payments')
  return {
    services,
    read: (look) => look(database.reads),
    async step<T>(change: (call: Call) => Promise<T>): Promise<T> {
      let made: T | undefined
      try {
        await performTask(
          { operation, caller, requestId: newId('req', services.platform) },
          database,
          services,
          async (call) => {
            made = await change(call)
            if (made === undefined) throw new NothingChanged()
          },
        )
      } catch (error) {
        if (!(error instanceof NothingChanged)) throw error
      }
      return made as T
    },
  }
}
