import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isOlderStep, isOlderVersion, OLDEST_AGENT, VersionNumber, UNTAG_VERSION } from '../../policy/version.ts'

it('equals the version of the package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  expect(UNTAG_VERSION).toBe(version)
  expect(VersionNumber.safeParse(UNTAG_VERSION).success).toBe(true)
})

it.each([
  ['0.1.0', '0.1.1', true],
  ['0.9.0', '0.10.0', true],
  ['0.99.99', '1.0.0', true],
  ['1.2.3', '1.2.3', false],
  ['0.10.0', '0.9.9', false],
  ['2.0.0', '1.99.99', false],
])('%s before %s: %s', (a, b, isOlder) => expect(isOlderVersion(a, b)).toBe(isOlder))

it.each(['1', '1.2', 'v1.2.3', '1.2.3-rc.1', '01.2.3', '1.2.3 ', ' 1.2.3', '1.2.999999', '1.2.3\n'])(
  'rejects %j as a release number',
  (text) => expect(VersionNumber.safeParse(text).success).toBe(false),
)

it.each([
  ['0.1.9', '0.2.0', true],
  ['0.9.9', '1.0.0', true],
  ['0.1.0', '0.1.9', false],
  ['0.2.0', '0.1.9', false],
])('step of %s before that of %s: %s', (a, b, isOlder) => expect(isOlderStep(a, b)).toBe(isOlder))

it('supports agents from the first release of a step on', () => {
  expect(OLDEST_AGENT).toMatch(/\.0$/)
  expect(isOlderVersion(UNTAG_VERSION, OLDEST_AGENT)).toBe(false)
})
