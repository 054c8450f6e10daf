import { cpSync, existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown, type Plugin } from 'rolldown'
import { ROOT } from './built.ts'

/**
 * The command `untag` in few files instead of 1,400 modules. A cloud then needs 0.5 s of processor time to start
 * instead of 1.1 s. Tests start hundreds of processes, so this was a fifth of the whole run.
 */

/** Packages with native parts, or with files that they find by their own path. */
const NOT_BUNDLED = /^(?:better-sqlite3|serialport|@serialport\/.*|pino|sharp|nfc-pcsc|@node-rs\/.*)$/
/** The compiler writes this file at every build. */
const BUILD_INFO = join(ROOT, 'dist/.server.tsbuildinfo')

let bundled: { command: Promise<string>; builtMs: number } | undefined

/**
 * Bundles the built command once per worker and build. Returns the path of a copy of `bin/untag.js` that loads the
 * bundle.
 */
export function bundledCommand(): Promise<string> {
  const builtMs = existsSync(BUILD_INFO) ? statSync(BUILD_INFO).mtimeMs : 0
  if (bundled?.builtMs !== builtMs) bundled = { command: bundle(), builtMs }
  return bundled.command
}

/** Bundles the built command, changed by `plugins`. */
export async function bundle(plugins: Plugin[] = []): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'untag-bundle-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  // Without it, Node.js parses each file twice to find out that it is a module: a tenth of each start.
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  // Loads ../dist/bin/main.js, which is the bundle here.
  const command = join(folder, 'bin/untag.js')
  cpSync(join(ROOT, 'bin/untag.js'), command)
  const build = await rolldown({
    input: join(ROOT, 'dist/bin/main.js'),
    platform: 'node',
    external: NOT_BUNDLED,
    plugins: [...plugins, ORIGINAL_PATHS],
    logLevel: 'warn',
  })
  await build.write({ dir: join(folder, 'dist/bin'), entryFileNames: 'main.js', keepNames: true })
  await build.close()
  return command
}

/** Modules find files beside them, such as pages and child programs, by their path in `dist`. */
const ORIGINAL_PATHS: Plugin = {
  name: 'original-paths',
  transform: {
    filter: { id: /\/dist\//, code: /import\.meta\./ },
    handler: (code, id) =>
      code
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
        .replaceAll('import.meta.dirname', JSON.stringify(join(id, '..'))),
  },
}
