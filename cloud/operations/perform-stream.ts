import { assert } from '../../policy/assert.ts'
import type { Database } from '../persistence/database.ts'
import { openCall, type OperationRequest } from './call-context.ts'
import type { StreamedResponse } from './body-formats.ts'
import type { Services } from './operation.ts'
import { readSourceOf } from './read-source.ts'
import { validateRequest } from './perform.ts'

/**
 * Performs an operation whose response is too long for memory. The first part is produced before the response starts,
 * because a later failure can only abort the body.
 */
export async function performStream(
  request: OperationRequest,
  database: Database,
  services: Services,
): Promise<StreamedResponse> {
  const { operation, caller } = request
  const { stream } = operation
  assert(stream !== undefined && !operation.changes, `${operation.name} does not stream its response`)
  const input = await validateRequest(request, services)
  const source = readSourceOf(operation, database)
  const { chunks, ...head } = await stream(
    { operation, caller, services, read: (look) => source((db) => look(openCall(request, db, services).call)) },
    input,
  )
  const parts = chunks[Symbol.asyncIterator]()
  const first = await parts.next()
  return { ...head, chunks: rest(first, parts) }
}

async function* rest(first: IteratorResult<string>, parts: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (let part = first; part.done !== true; part = await parts.next()) yield part.value
  } finally {
    await parts.return?.()
  }
}
