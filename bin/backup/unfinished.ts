import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Staging folder of a restore. While this folder exists, the restore is incomplete and neither the old nor the new data
 * is usable.
 */
export function restoringFolder(data: string): string {
  return join(data, 'restoring')
}

/** Throws if a restore is incomplete, because the data folder may still have the old generation. */
export function assertRestored(data: string): void {
  if (existsSync(restoringFolder(data)))
    throw new Error(`a restore into ${data} was interrupted: run untag restore again`)
}
