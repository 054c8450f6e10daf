import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { IMAGE_NAME, type ImageStore } from '../cloud/images/image-store.ts'

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
      mkdirSync(dirname(file), { recursive: true })
      // Whole or not at all, also when the power fails.
      const fresh = `${file}.${process.pid}.new`
      flushed(fresh, 'w', (fd) => writeFileSync(fd, bytes))
      renameSync(fresh, file)
      flushed(dirname(file), 'r')
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

function flushed(path: string, flags: 'w' | 'r', work?: (fd: number) => void): void {
  const fd = openSync(path, flags)
  try {
    work?.(fd)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
