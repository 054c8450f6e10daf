import { chmodSync, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

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
  const why = isDenied(error) ? 'permission denied: run untag as the owner, or change the owner to this user' : code
  return new Error(`${path} cannot be read or written (${why})`, { cause: error })
}

/** True if this user has no right to the file. */
export function isDenied(error: unknown): boolean {
  return DENIED.has((error as NodeJS.ErrnoException).code ?? '')
}

const OTHERS = 0o007
/** Suffixes of the files of a SQLite database. */
const SUFFIXES = ['', '-wal', '-shm']

/**
 * Removes the access of other users to existing databases. The databases contain verifiers of PINs. A program that can
 * read the verifiers could try all PINs. Preserves the access of the group, because an administrator may have set it.
 */
export function hideFromOthers(folder: string, names: readonly string[]): void {
  for (const file of names
    .flatMap((name) => SUFFIXES.map((suffix) => join(folder, name + suffix)))
    .filter((file) => existsSync(file))) {
    const { mode, uid } = statSync(file)
    // Only the owner of a file may change its mode.
    if ((mode & OTHERS) !== 0 && uid === process.getuid?.()) chmodSync(file, mode & 0o770)
  }
}

/**
 * Suggests another folder if there is a cloud or agent in `DATA/cloud` or `DATA/edge` (the folders of `untag start`),
 * or beside `DATA`.
 */
export function nearby(data: string, name: 'cloud' | 'edge', file: string): string {
  const found = [join(data, name), join(dirname(data), name)].find(
    (folder) => resolve(folder) !== resolve(data) && existsSync(join(folder, file)),
  )
  return found === undefined ? '' : ` (found one: use --data ${found})`
}
