import { chmodSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

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
