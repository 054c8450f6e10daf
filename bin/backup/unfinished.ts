import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** While this folder is there, a restore has not come to its end: neither the old cloud is whole nor the new one. */
export function restoringFolder(data: string): string {
  return join(data, 'restoring')
}

/** Throws when a restore was begun and not ended: a cloud that ran now would know nothing of what its agents remember. */
export function assertRestored(data: string): void {
  if (existsSync(restoringFolder(data)))
    throw new Error(`a restore into ${data} has not come to its end: run untag restore again`)
}
