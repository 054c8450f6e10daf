import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/**
 * Look-ups of the programs that tests, proofs and benchmarks use if they are installed, such as strace. The environment
 * variable `UNTAG_TEST_TOOLS=none` makes each look-up answer "missing", so that a machine with every tool shows what
 * works on one without. `required` makes a missing tool an error (`test/support/tools.ts`).
 */
const isBare = process.env['UNTAG_TEST_TOOLS'] === 'none'

/** Debian installs servers where the PATH of a user may not lead. */
const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']

/** Path of the first candidate that is installed. A candidate is the name of a program, or the path of a file. */
export function findTool(...candidates: readonly string[]): string | undefined {
  if (isBare) return undefined
  return candidates
    .flatMap((name) => (isAbsolute(name) ? [name] : FOLDERS.map((folder) => join(folder, name))))
    .find((file) => existsSync(file))
}

/** Runs a tool to find out what it can do here. `error` is set if the tool is missing. */
export function tryTool(program: string, ...args: readonly string[]): Partial<SpawnSyncReturns<string>> {
  if (isBare) return { error: new Error(`${program} is not used: UNTAG_TEST_TOOLS is none`) }
  return spawnSync(program, args, { encoding: 'utf8' })
}

/** What to install for a missing program. `name`: Debian's package; default: as the program. */
export function missingTool(program: string, name = program): string | undefined {
  return findTool(program) === undefined ? `install the package ${name}` : undefined
}

const WHOLE_CHROMIUM = findTool('/usr/bin/chromium')
/**
 * Chromium, or why it is missing. Its headless shell has no windows, notices, installations or pages about errors, so a
 * page takes a fifth of the processor time. `whole`: with all that.
 */
export const CHROMIUM = { shell: findTool('chromium-headless-shell') ?? WHOLE_CHROMIUM, whole: WHOLE_CHROMIUM }
const missing = (name: string) => `Chromium is missing: install the package ${name} (apt-get install ${name})`
export const NO_CHROMIUM = CHROMIUM.shell === undefined ? missing('chromium-headless-shell') : undefined
export const NO_WHOLE_CHROMIUM = CHROMIUM.whole === undefined ? missing('chromium') : undefined
