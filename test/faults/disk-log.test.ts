import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readDiskLogs } from '../verification/disk-faults/power-loss/disk-log.ts'
import { temporaryFolder } from '../support/databases.ts'

const hex = (text: string) => `"${[...Buffer.from(text)].map((b) => `\\x${b.toString(16).padStart(2, '0')}`).join('')}"`

describe('the events of a strace log', () => {
  const kindsOf = (lines: readonly string[]) => {
    const log = join(temporaryFolder('strace'), 'log')
    writeFileSync(log, `${lines.join('\n')}\n`)
    return readDiskLogs('/data', [{ part: 'cloud', log }]).map(({ kind }) => kind)
  }
  const created = `7 1.0 openat(AT_FDCWD, ${hex('/data/a')}, O_RDWR|O_CREAT, 0600) = 5</data/a>`
  const output = (at: number) => `8 ${at} write(9<TCP:[1->2]>, ${hex('ok')}, 2) = 2`

  it('place a flush at its end, because only then its data is safe', () => {
    expect(
      kindsOf([created, '7 2.0 fsync(5</data/a> <unfinished ...>', output(2.1), '7 2.2 <... fsync resumed>) = 0']),
    ).toEqual(['create', 'output', 'sync'])
  })

  it('place an output at its start, because its receiver may already have it', () => {
    expect(
      kindsOf([
        created,
        `8 2.0 write(9<TCP:[1->2]>, ${hex('ok')}, 2 <unfinished ...>`,
        '7 2.1 fsync(5</data/a>) = 0',
        '8 2.2 <... write resumed>) = 2',
      ]),
    ).toEqual(['create', 'output', 'sync'])
  })

  it('show a further name of a file like the name of a new one', () => {
    expect(kindsOf([created, `7 2.0 link(${hex('/data/a')}, ${hex('/data/b')}) = 0`])).toEqual(['create', 'create'])
  })
})
