import { newId } from '../../policy/ids.ts'
import { systemCaller, type Tenant } from '../foundation/caller.ts'
import type { Call, Operation, Services, StepContext } from '../operations/operation.ts'
import { performTask } from '../operations/perform.ts'
import type { Database, Db } from '../persistence/database.ts'

/** Carries out work that calls a provider between its transactions: an operation in steps, a notification, or a job. */
export interface Runner {
  readonly services: Services
  /** Looks at what is committed. */
  read<T>(look: (db: Db) => Promise<T>): Promise<T>
  /** One transaction, durable with its events. */
  step<T>(change: (call: Call) => Promise<T>): Promise<T>
}

/** An operation in steps as a runner. */
export function runnerOf(work: StepContext): Runner {
  return {
    services: work.services,
    read: (look) => work.read((call) => look(call.db)),
    step: (change) => work.step(change),
  }
}

/** Thrown to leave no trace of a step that changed nothing. */
class NothingChanged extends Error {
  override name = 'NothingChanged'
}

/** A runner that no caller asked for: within the tenant, in the name of this operation. A step that answers undefined is undone. */
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
