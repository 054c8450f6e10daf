import { closeSync, constants, existsSync, lstatSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SmallFiles } from '../edge-agent/ledger/file/watermark.ts'

const WRITABLE_BY_OTHERS = 0o022
const { O_CREAT, O_NOFOLLOW = 0, O_WRONLY } = constants

/** Small files in `folder`. Default: the runtime folder of this user, which the next reboot empties. */
export function runtimeFiles(folder: string = defaultFolder()): SmallFiles {
  let isOwn = false

  /** Creates and checks the folder once. Later calls need no check, because only this user may write to the folder. */
  function makeOwn(): void {
    if (isOwn) return
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    checkOwn(folder)
    isOwn = true
  }

  return {
    read(name) {
      if (!existsSync(join(folder, name))) return undefined
      makeOwn()
      return readFileSync(join(folder, name), 'utf8')
    },
    write(name, text) {
      makeOwn()
      try {
        overwrite(join(folder, name), text)
      } catch (error) {
        // The system may have emptied the runtime folder.
        if ((error as { code?: string }).code !== 'ENOENT') throw error
        isOwn = false
        makeOwn()
        overwrite(join(folder, name), text)
      }
    },
  }
}

/** `XDG_RUNTIME_DIR/untag`, or `untag-UID` in the folder for temporary files. */
export function defaultFolder(env: NodeJS.ProcessEnv = process.env): string {
  const { XDG_RUNTIME_DIR: runtime } = env
  return runtime === undefined || runtime === ''
    ? join(tmpdir(), `untag-${process.getuid?.() ?? 'run'}`)
    : join(runtime, 'untag')
}

/** Throws if the folder is not safe: another user may have created the folder, or replaced it by a link. */
function checkOwn(folder: string): void {
  const stat = lstatSync(folder)
  const isOwn = process.getuid === undefined || stat.uid === process.getuid()
  const isOpen = process.getuid !== undefined && (stat.mode & WRITABLE_BY_OTHERS) !== 0
  if (!stat.isDirectory() || !isOwn || isOpen)
    throw new Error(
      `${folder} must be a folder of this user that nobody else may write to: choose another with --runtime-dir`,
    )
}

/** Overwrites in place without truncating, so that a killed process leaves the old or the new text. */
function overwrite(file: string, text: string): void {
  const opened = openSync(file, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    writeSync(opened, text, 0)
  } finally {
    closeSync(opened)
  }
}
