import { statSync } from 'node:fs'

const ABSENT = new Set(['ENOENT', 'ENOTDIR'])
const DENIED = new Set(['EACCES', 'EPERM'])

/**
 * True if the path exists. Throws if this user has no access. If a caller treated such a path as missing, it would
 * create a second agent, or new keys for a cloud.
 */
export function pathExists(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch (error) {
    if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return false
    throw accessError(path, error)
  }
}

/** Converts an access error into an error with the path and the fix. Returns errors about missing paths unchanged. */
export function accessError(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined || ABSENT.has(code)) return error
  const why = DENIED.has(code) ? 'permission denied: run untag as the owner, or change the owner to this user' : code
  return new Error(`${path} cannot be read or written (${why})`, { cause: error })
}
