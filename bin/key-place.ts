import { join } from 'node:path'
import { keyFilesIn, type KeyPlace } from '../cloud/platform/authority/key-files.ts'

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
