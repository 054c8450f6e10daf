import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { dumpPostgres } from '../../host/backup/database-dump.ts'
import { temporaryFolder } from '../support/databases.ts'

/** A program in the place of pg_dump that writes down what each user of the machine could read, and its password. */
const folder = temporaryFolder('pg-dump')
beforeAll(() => {
  const program = join(folder, 'pg_dump')
  writeFileSync(program, `#!/bin/sh\necho "$@" > ${folder}/arguments\necho "$PGPASSWORD" > ${folder}/password\n`)
  chmodSync(program, 0o755)
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env['PATH'] ?? ''}`)
})
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

const read = (name: string) => readFileSync(join(folder, name), 'utf8').trim()

it.each([
  ['postgres://untag:s%20cret@db/untag', 'postgres://untag@db/untag'],
  ['postgres://db/untag?user=untag&password=s%20cret', 'postgres://db/untag?user=untag'],
])('shows no password of %s in the arguments', async (url, plain) => {
  await dumpPostgres(url, '/dev/null')
  expect(read('arguments')).toBe(`--format=custom --no-owner --no-privileges --file=/dev/null --dbname=${plain}`)
  expect(read('password')).toBe('s cret')
})

it('refuses a passphrase, which the program would show', () => {
  expect(() => dumpPostgres('postgres://db/untag?sslpassword=x', '/dev/null')).rejects.toThrow('sslpassword')
})
