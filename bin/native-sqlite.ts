import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** What only an addon calls that was compiled with the headers of Node.js 24.19 and later. */
const TAKES_HOOKS_BACK = 'RemoveEnvironmentCleanupHook'

/**
 * Whether SQLite's native part may abort the process while garbage is collected. Compiled with headers of Node.js 24.19 and later,
 * each of its objects takes a cleanup hook back when it goes, at a moment at which Node.js 24 often has nothing to take it from
 * (nodejs/node#65446). Prebuilt binaries were compiled with older headers; who has none for their machine compiles, and meets it.
 */
export function mayAbort(addon: Buffer): boolean {
  return addon.includes(TAKES_HOOKS_BACK)
}

/** The native part of better-sqlite3 as it is installed; undefined where there is none. */
export function installedSqlite(): Buffer | undefined {
  const file = join(
    dirname(createRequire(import.meta.url).resolve('better-sqlite3/package.json')),
    'build/Release/better_sqlite3.node',
  )
  return existsSync(file) ? readFileSync(file) : undefined
}
