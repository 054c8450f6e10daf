import type { KeyStorage } from '../../../../cloud/platform/authority/key-files.ts'

/** Key files in memory. `texts`: the files by path. */
export function keyStorageInMemory(texts = new Map<string, string>()): KeyStorage {
  return {
    read: (file) => texts.get(file),
    write: (file, text) => void texts.set(file, text),
    create: (file, text) => void (texts.has(file) || texts.set(file, text)),
  }
}
