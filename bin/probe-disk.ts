import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** As much as one change of the database needs at least. */
const PROBE = new Uint8Array(4_096)

/** Rejects if this folder cannot be written, or if there is no room in it. Leaves nothing behind. */
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
