import { chmodSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

const OTHERS = 0o007
/** A database of SQLite and what lies beside it while it is open. */
const SUFFIXES = ['', '-wal', '-shm']

/**
 * Takes databases from everybody else on the machine, where an earlier release has made them in a folder that others may enter: of an
 * operator's PIN a verifier is in them, which whoever has it tries all PINs with. Whom a group lets in was somebody's decision.
 */
export function hideFromOthers(folder: string, names: readonly string[]): void {
  for (const file of names
    .flatMap((name) => SUFFIXES.map((suffix) => join(folder, name + suffix)))
    .filter((file) => existsSync(file))) {
    const { mode, uid } = statSync(file)
    // Somebody else's only they can change.
    if ((mode & OTHERS) !== 0 && uid === process.getuid?.()) chmodSync(file, mode & 0o770)
  }
}
