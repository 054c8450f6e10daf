import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Puts a new file in the place of another, whole or not at all, also when the power goes: written, flushed, renamed, and the folder flushed. */
export function replaceFile(file: string, text: string, mode: number): void {
  const fresh = `${file}.new`
  flushed(fresh, 'w', mode, (fd) => writeSync(fd, text))
  renameSync(fresh, file)
  flushed(dirname(file), 'r', mode)
}

function flushed(path: string, flags: 'w' | 'r', mode: number, work?: (fd: number) => void): void {
  const fd = openSync(path, flags, mode)
  try {
    work?.(fd)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
