import { isDeepStrictEqual } from 'node:util'
import type { KnownCaller } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import type { OperationRequest } from './call-context.ts'
import type { Services } from './operation.ts'

/**
 * Throws 401 if the rights of the caller have ended or changed since the request was admitted: bodies, uploads and long
 * operations take time. `db` is the transaction of the change, or committed data of the primary.
 */
export async function assertRights(
  { caller }: Pick<OperationRequest, 'caller'>,
  db: Db,
  { findCaller, platform }: Pick<Services, 'findCaller' | 'platform'>,
): Promise<void> {
  if (caller.kind === 'anyone') return
  const now = await findCaller(db, caller, platform.clock.wall())
  if (now && isDeepStrictEqual(rightsOf(now), rightsOf(caller))) return
  throw new Failure(
    'unauthenticated',
    now
      ? 'the rights of this key or session changed while the request was on its way: send it again'
      : 'this key or session ended while the request was on its way',
  )
}

const rightsOf = (caller: KnownCaller) => ({ ...caller, keyGeneration: undefined, address: undefined })
