import { assert } from '../../../policy/assert.ts'
import { Failure } from '../foundation/failure.ts'
import { holderOf } from '../foundation/shared-slots.ts'
import { shares } from '../foundation/shares.ts'
import type { Database } from '../persistence/database.ts'
import { openCall, type OperationRequest } from './call-context.ts'
import type { StreamedResponse } from './body-formats.ts'
import { assertRights } from './caller-rights.ts'
import type { Services } from './operation.ts'
import { readSourceOf } from './read-source.ts'
import { validateRequest } from './perform.ts'

/** Maximum number of responses that are being streamed: to one account, and to all. */
export const STREAMS = { ofOne: 4, total: 64 }
const openStreams = shares(STREAMS)

/**
 * Performs an operation whose response is too long for memory. The first part is produced before the response starts,
 * because a later failure can only abort the body. The caller's rights are checked before each read. Throws 503 if
 * the account has too many streams.
 */
export async function performStream(
  request: OperationRequest,
  database: Database,
  services: Services,
): Promise<StreamedResponse & { close(): void }> {
  const { operation, caller } = request
  const { stream } = operation
  assert(stream !== undefined && !operation.changes, `${operation.name} does not stream its response`)
  const input = await validateRequest(request, services)
  // A response that has begun can only be aborted.
  await assertRights(request, database.reads, services)
  const close = openStreams(holderOf(caller))
  if (!close)
    throw new Failure('unavailable', 'too many exports are being sent: wait until one has ended', { retryAfter: 10 })
  try {
    const source = readSourceOf(operation, database, holderOf(caller))
    const { chunks, ...head } = await stream(
      {
        operation,
        caller,
        services,
        read: (look) =>
          source(async (db) => {
            await assertRights(request, database.reads, services)
            return look(openCall(request, db, services).call)
          }),
      },
      input,
    )
    const parts = chunks[Symbol.asyncIterator]()
    const first = await parts.next()
    return { ...head, chunks: rest(first, parts), close }
  } catch (error) {
    close()
    throw error
  }
}

async function* rest(first: IteratorResult<string>, parts: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (let part = first; part.done !== true; part = await parts.next()) yield part.value
  } finally {
    await parts.return?.()
  }
}
