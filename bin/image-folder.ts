import { closeSync, existsSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { IMAGE_NAME, type ImageStore } from '../cloud/platform/foundation/image-store.ts'
import { flushFolder, makeFolder } from './durable-folder.ts'

/** Images in a folder, spread over subfolders by the first two characters of their names. */
export function imageFolder(folder: string): ImageStore {
  const pathOf = (name: string) => {
    if (!IMAGE_NAME.test(name)) throw new Error(`not the name of an image: ${name.slice(0, 80)}`)
    return join(folder, name.slice(0, 2), name)
  }
  return {
    async put(name, bytes) {
      const file = pathOf(name)
      if (existsSync(file)) return
      makeFolder(dirname(file))
      // Writes, flushes and renames, so that a power cut leaves no partial file.
      const fresh = `${file}.${process.pid}.new`
      const fd = openSync(fresh, 'w')
      try {
        writeFileSync(fd, bytes)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(fresh, file)
      flushFolder(dirname(file))
    },
    async get(name) {
      try {
        return await readFile(pathOf(name))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
  }
}
