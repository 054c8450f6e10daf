import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the project. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Builds the programs if they are not built. Test files run in parallel, so a file lock allows only one build at a
 * time. Without `flock` there is no lock.
 */
export function ensureBuilt(): void {
  const lock = join(tmpdir(), `untag-build-${createHash('sha256').update(ROOT).digest('hex').slice(0, 12)}.lock`)
  const build = [process.execPath, 'scripts/prepare.js', '--build-only']
  const locked = spawnSync('flock', [lock, ...build], { cwd: ROOT, encoding: 'utf8' })
  const { status, stdout, stderr } = locked.error
    ? spawnSync(process.execPath, build.slice(1), { cwd: ROOT, encoding: 'utf8' })
    : locked
  if (status !== 0) throw new Error(`the build failed:\n${stdout}${stderr}`)
}
