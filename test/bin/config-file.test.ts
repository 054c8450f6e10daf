import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { configFile } from '../../bin/config-file.ts'
import { temporaryFolder } from '../support/databases.ts'

const READER = { deviceId: 'dev_a', driver: 'llrp', link: { tcp: '10.0.0.7:5084' } }

let folder: string
beforeAll(() => (folder = temporaryFolder('config')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8)

it('makes a file that its owner alone may read, as passwords of readers stand in it', () => {
  const file = join(folder, 'new.json')
  // As a crash leaves it.
  writeFileSync(`${file}.new`, '', { mode: 0o644 })
  expect(configFile(file).add(READER)).toEqual({ ok: true })
  expect(modeOf(file)).toBe('600')
})

it.each([0o600, 0o640, 0o644])('leaves a file of mode %o to whom it was', (mode) => {
  const file = join(folder, `${mode}.json`)
  writeFileSync(file, JSON.stringify({ devices: [] }))
  chmodSync(file, mode)
  expect(configFile(file).add(READER)).toEqual({ ok: true })
  expect(modeOf(file)).toBe(mode.toString(8))
})
