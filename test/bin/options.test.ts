import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeOptions, readOptions } from '../../host/options.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'

describe('a secret setting', () => {
  const folder = temporaryFolder('options')
  const file = join(folder, 'database-url')
  const url = 'postgres://untag:secret@db/untag'
  writeFileSync(file, `${url}\n`)
  afterAll(() => rmSync(folder, { recursive: true }))

  const databaseUrl = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    readOptions(CLOUD_OPTIONS, args, env).databaseUrl

  it('is read from the file that an option or a variable names', () => {
    expect(databaseUrl(['--database-url-file', file])).toBe(url)
    expect(databaseUrl([], { UNTAG_DATABASE_URL_FILE: file })).toBe(url)
  })

  it('on the command line overrides the environment, in either form', () => {
    expect(databaseUrl(['--database-url-file', file], { UNTAG_DATABASE_URL: 'postgres://other/db' })).toBe(url)
    expect(databaseUrl(['--database-url', 'postgres://other/db'], { UNTAG_DATABASE_URL_FILE: file })).toBe(
      'postgres://other/db',
    )
  })

  it('is rejected in both forms together', () => {
    expect(() => databaseUrl(['--database-url', url, '--database-url-file', file])).toThrow(
      '--database-url and --database-url-file cannot be used together',
    )
  })

  it('has errors that name the file but not its content', () => {
    expect(() => databaseUrl(['--database-url-file', join(folder, 'none')])).toThrow(
      /^--database-url-file cannot be read: ENOENT/,
    )
    writeFileSync(file, 'hunter2')
    expect(() => databaseUrl(['--database-url-file', file])).toThrow(
      `--database-url-file (${file}) must be an address beginning with postgres:// or postgresql://`,
    )
  })

  it('is in the help in both forms', () => {
    expect(describeOptions(CLOUD_OPTIONS)).toMatch(/--database-url-file FILE .*\[UNTAG_DATABASE_URL_FILE\]/)
  })
})
