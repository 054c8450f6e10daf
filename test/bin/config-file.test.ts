import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { configFile } from '../../host/config-file.ts'
import { temporaryFolder } from '../support/databases.ts'

const READER = { deviceId: 'dev_a', driver: 'llrp', link: { tcp: '10.0.0.7:5084' } }

let folder: string
beforeAll(() => (folder = temporaryFolder('config')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8)

it('creates a file that only its owner may read, because it contains passwords of readers', () => {
  const file = join(folder, 'new.json')
  // A file left by a crash.
  writeFileSync(`${file}.new`, '', { mode: 0o644 })
  expect(configFile(file).add(READER)).toMatchObject({ ok: true })
  expect(modeOf(file)).toBe('600')
})

it.each([0o600, 0o640, 0o644])('preserves the mode %o of an existing file', (mode) => {
  const file = join(folder, `${mode}.json`)
  writeFileSync(file, JSON.stringify({ devices: [] }))
  chmodSync(file, mode)
  expect(configFile(file).add(READER)).toMatchObject({ ok: true })
  expect(modeOf(file)).toBe(mode.toString(8))
})
