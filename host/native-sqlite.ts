import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Symbol that only addons compiled with headers of Node.js 24.19 and later import. */
const TAKES_HOOKS_BACK = 'RemoveEnvironmentCleanupHook'

/**
 * True if the native part of better-sqlite3 may abort the process during garbage collection (nodejs/node#65446). If
 * this native part was compiled with headers of Node.js 24.19 or later, its objects remove a cleanup hook after the
 * environment has ended. Prebuilt binaries use older headers, so only a build on this machine is affected.
 */
export function mayAbort(addon: Buffer): boolean {
  return addon.includes(TAKES_HOOKS_BACK)
}

/** The installed native part of better-sqlite3; undefined if there is none. */
export function installedSqlite(): Buffer | undefined {
  const file = join(
    dirname(createRequire(import.meta.url).resolve('better-sqlite3/package.json')),
    'build/Release/better_sqlite3.node',
  )
  return existsSync(file) ? readFileSync(file) : undefined
}
