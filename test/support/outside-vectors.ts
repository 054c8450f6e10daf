import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folder of external test vectors (docs/guides/tests.md); empty if not set. They are not part of the project. */
const ROOT = process.env['UNTAG_TEST_VECTORS'] ?? ''

export const hasOutsideVectors = ROOT !== '' && existsSync(ROOT)

/** Suffix for the title of a suite. If the files are missing, it says why the suite is skipped. */
export const OUTSIDE_VECTORS_NOTE = hasOutsideVectors
  ? ''
  : ' (skipped: set UNTAG_TEST_VECTORS to a folder with jose/*_test.json of C2SP/wycheproof)'

export function outsideVectors<T>(path: string): T {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T
}

export const hasLlrpVectors = hasOutsideVectors && existsSync(join(ROOT, 'llrp'))

export const LLRP_VECTORS_NOTE = hasLlrpVectors
  ? ''
  : ' (skipped: set UNTAG_TEST_VECTORS to a folder with llrp/*.bytes of edgexfoundry/device-rfid-llrp-go)'

export function outsideBytes(path: string): Uint8Array {
  return Uint8Array.from(readFileSync(join(ROOT, path)))
}
