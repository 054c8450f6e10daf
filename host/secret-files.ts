import { chmodSync, constants, copyFileSync, linkSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type KeyStorage, keyFilesIn, type KeyPlace } from '../cloud/platform/authority/key-files.ts'
import { flushFolder, makeFolder, replaceFile } from './replace-file.ts'
import { pathExists, accessError } from './private-files.ts'

/** Settings that name the key files of a cloud. */
export interface KeySettings {
  data: string
  keysDir: string | undefined
  masterKeyFile: string | undefined
  rootKeyFile: string | undefined
}

/** The key files of the settings: named one by one, or in one folder, by default `keys` in the data folder. */
export function keyPlaceOf({ data, keysDir, masterKeyFile, rootKeyFile }: KeySettings): KeyPlace {
  const { master, root } = keyFilesIn(keysDir ?? join(data, 'keys'))
  return { master: masterKeyFile ?? master, root: rootKeyFile ?? root }
}

/** Reads and writes files of mode 0600 in folders of mode 0700. */
export const secretFiles: KeyStorage = {
  read(file) {
    if (!pathExists(file)) return undefined
    try {
      hide(file)
      return readFileSync(file, 'utf8')
    } catch (error) {
      throw accessError(file, error)
    }
  },
  write(file, text) {
    makeFolder(dirname(file))
    replaceFile(file, text, 0o600)
  },
  create(file, text) {
    try {
      makeFolder(dirname(file))
      const own = mkdtempSync(join(dirname(file), '.new-'))
      try {
        const fresh = join(own, 'text')
        replaceFile(fresh, text, 0o600)
        publish(fresh, file)
      } finally {
        rmSync(own, { recursive: true, force: true })
      }
      flushFolder(dirname(file))
    } catch (error) {
      throw new Error(
        `${file} does not exist and cannot be created (${reasonOf(error)}): copy it from the other machines of this cloud, or make its folder writable`,
        { cause: error },
      )
    }
  },
}

/** Errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<unknown> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

/** Gives a complete file its name unless the name is taken. */
function publish(fresh: string, file: string): void {
  try {
    try {
      linkSync(fresh, file)
    } catch (error) {
      if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error
      copyFileSync(fresh, file, constants.COPYFILE_EXCL)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function reasonOf(error: unknown): string {
  const { cause = error } = error as Error
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'EROFS') return 'its folder is read-only'
  return code === 'EACCES' || code === 'EPERM' ? 'permission denied' : (code ?? message)
}

/**
 * Removes the access of other users. A read-only mount, such as a secret of a container, has the mode of its mount, and
 * only the owner may change the mode.
 */
function hide(file: string): void {
  if (statSync(file).uid !== process.getuid?.()) return
  try {
    chmodSync(file, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error
  }
}
