import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Test vectors of others (see docs/development.md); they are not part of the project. */
const ROOT = process.env['UNTAG_TEST_VECTORS'] ?? join(import.meta.dirname, '../../../shared/vectors')

export const hasOutsideVectors = existsSync(ROOT)

/** For the name of a suite: says why it is skipped where the files are missing. */
export const OUTSIDE_VECTORS_NOTE = hasOutsideVectors
  ? ''
  : ' (skipped: set UNTAG_TEST_VECTORS to a folder with jose/*_test.json of C2SP/wycheproof)'

export function outsideVectors<T>(path: string): T {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T
}

export const hasLlrpVectors = existsSync(join(ROOT, 'llrp'))

export const LLRP_VECTORS_NOTE = hasLlrpVectors
  ? ''
  : ' (skipped: set UNTAG_TEST_VECTORS to a folder with llrp/*.bytes of edgexfoundry/device-rfid-llrp-go)'

export function outsideBytes(path: string): Uint8Array {
  return Uint8Array.from(readFileSync(join(ROOT, path)))
}
