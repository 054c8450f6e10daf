import { chmodSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { compareConfig, configFile, configInUse } from '../../host/config-file.ts'
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

it('tells the file that an agent uses from other files, and from its state after a change', () => {
  const [file, link, other] = ['used.json', 'link.json', 'other.json'].map((name) => join(folder, name))
  if (file === undefined || link === undefined || other === undefined) throw new Error('no names')
  let stored = ''
  const used = configFile(file, () => (stored = configInUse(file)))
  used.add(READER)
  symlinkSync(file, link)
  writeFileSync(other, JSON.stringify({ devices: [] }))
  expect(compareConfig(file, stored)).toBe('in use')
  expect(compareConfig(link, stored)).toBe('in use')
  expect(compareConfig(other, stored)).toEqual({ other: file })
  expect(compareConfig(other, configInUse(undefined))).toEqual({ other: undefined })
  // Agents of other releases store none.
  expect(compareConfig(other, undefined)).toBeUndefined()
  // A change of the set-up page is in use, or the agent itself says that it waits for a restart.
  used.replace('dev_a', { ...READER, link: { tcp: '10.0.0.8:5084' } })
  expect(compareConfig(file, stored)).toBe('in use')
  writeFileSync(file, JSON.stringify({ devices: [] }))
  expect(compareConfig(file, stored)).toBe('changed')
  rmSync(file)
  expect(compareConfig(file, stored)).toBe('changed')
})
