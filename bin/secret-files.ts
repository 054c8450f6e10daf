import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretFiles } from '../policy/platform.ts'

/** Files of mode 0600 in folders of mode 0700: a new file, flushed, put in place, and the folder flushed. */
export const secretFiles: SecretFiles = {
  read(file) {
    if (!existsSync(file)) return undefined
    chmodSync(file, 0o600)
    return readFileSync(file, 'utf8')
  },
  write(file, text) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const fresh = `${file}.new`
    flushed(fresh, 'w', (fd) => writeSync(fd, text))
    renameSync(fresh, file)
    flushed(dirname(file), 'r')
  },
}

function flushed(path: string, flags: 'w' | 'r', work?: (fd: number) => void): void {
  const fd = openSync(path, flags, 0o600)
  try {
    work?.(fd)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
