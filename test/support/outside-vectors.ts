import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folder of external test vectors (docs/reference/tests.md); empty if not set. They are not part of the project. */
const ROOT = process.env['UNTAG_TEST_VECTORS'] ?? ''

const has = (path: string) => ROOT !== '' && existsSync(join(ROOT, path))

/** Why tests of the JOSE vectors are skipped, or undefined. */
export const NO_JOSE_VECTORS = has('jose')
  ? undefined
  : 'set UNTAG_TEST_VECTORS to a folder with jose/*_test.json of C2SP/wycheproof'

export function outsideVectors<T>(path: string): T {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T
}

/** Why tests of the LLRP vectors are skipped, or undefined. */
export const NO_LLRP_VECTORS = has('llrp')
  ? undefined
  : 'set UNTAG_TEST_VECTORS to a folder with llrp/*.bytes of edgexfoundry/device-rfid-llrp-go'

export function outsideBytes(path: string): Uint8Array {
  return Uint8Array.from(readFileSync(join(ROOT, path)))
}
