import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'

/** One page, the minimum that a write of the database needs. */
const PROBE = new Uint8Array(4_096)

/** Writes and removes a test file. Rejects if the folder is not writable or the disk is full. */
export async function probeDisk(folder: string): Promise<void> {
  const file = join(folder, `.probe-${process.pid}`)
  try {
    const handle = await open(file, 'w', 0o600)
    try {
      await handle.write(PROBE)
      await handle.datasync()
    } finally {
      await handle.close()
    }
  } finally {
    await rm(file, { force: true })
  }
}

/** Free space of the disk with this folder, bytes. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
