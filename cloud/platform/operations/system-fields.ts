import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../foundation/failure.ts'

/**
 * Throws 400 if the caller changed a field that only the system sets (ADR 0002). `current` is the object as the API
 * returns it. An update accepts these fields, so that clients can read an object, change one field and send it back.
 */
export function assertUnchanged(sent: Readonly<Record<string, unknown>>, current: object): void {
  const known = new Map(Object.entries(current))
  for (const [name, value] of Object.entries(sent))
    if (value !== undefined && !isDeepStrictEqual(value ?? null, known.get(name) ?? null))
      throw invalid(name, 'is set by the system and cannot be changed', 'system_field')
}
