import { statSync } from 'node:fs'

const ABSENT = new Set(['ENOENT', 'ENOTDIR'])
const DENIED = new Set(['EACCES', 'EPERM'])

/**
 * Whether something is at this path. Throws where that cannot be told: whoever heard "not there" of a folder that belongs to
 * another user would make anew what it holds, such as an agent or the keys of a cloud.
 */
export function isThere(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch (error) {
    if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return false
    throw outOfReach(path, error)
  }
}

/** What to say of a path that the system keeps from this user, with what helps; every other error as it is. */
export function outOfReach(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined || ABSENT.has(code)) return error
  const why = DENIED.has(code)
    ? 'this user may not: run untag as the user whose it is, or make it belong to this one'
    : code
  return new Error(`${path} cannot be read or written (${why})`, { cause: error })
}
