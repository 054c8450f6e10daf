import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isAllowed, lockedPackages } from '../../scripts/generate/licences-page.ts'
import { ROOT } from '../house/sources.ts'

const packages = lockedPackages((file) => readFileSync(join(ROOT, file), 'utf8'))

it('finds every production package, and each has an allowed licence', () => {
  expect(packages.length).toBeGreaterThan(100)
  expect(packages.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['pg-protocol', 'serialport', 'better-sqlite3']),
  )
  expect(packages.filter((each) => !isAllowed(each))).toEqual([])
})

it.each([
  undefined,
  'GPL-3.0-only',
  'MPL-2.0',
  'AGPL-3.0-or-later',
  'LGPL-3.0-or-later',
  'MIT AND GPL-2.0-only',
  'UNLICENSED',
])('does not allow the licence %s', (licence) => {
  expect(isAllowed({ name: 'some-package', version: '1.0.0', licence, isOptional: true })).toBe(false)
})

it('npm run sbom names the same packages, each with its licence', () => {
  const text = execFileSync(process.execPath, [join(ROOT, 'scripts/sbom.js')], { encoding: 'utf8' })
  const { bomFormat, metadata, components } = JSON.parse(text) as {
    bomFormat: string
    metadata: { component: { name: string } }
    components: { name: string; version: string; licenses: object[] }[]
  }
  expect([bomFormat, metadata.component.name]).toEqual(['CycloneDX', 'untag'])
  const ids = components.map(({ name, version }) => `${name}@${version}`)
  expect([...new Set(ids)].toSorted()).toEqual(packages.map(({ name, version }) => `${name}@${version}`).toSorted())
  expect(components.filter(({ licenses }) => licenses.length === 0)).toEqual([])
})
