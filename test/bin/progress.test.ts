import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import { copyWithProgress } from '../../host/backup/files.ts'
import { progressOf, terminalProgress } from '../../host/backup/progress.ts'
import { copyDatabase } from '../../host/backup/database-dump.ts'
import { temporaryFolder } from '../support/databases.ts'

/** A stream that remembers what was written. */
function stream(isTTY: boolean): { stream: NodeJS.WriteStream; written: string[] } {
  const written: string[] = []
  return { stream: { isTTY, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream, written }
}

describe('progress of a long command', () => {
  it('is a bar in a terminal, and a line for each 25 % in a file', () => {
    const [terminal, file] = [stream(true), stream(false)]
    for (const { stream: to } of [terminal, file]) {
      const report = progressOf('database', to)
      for (let done = 0; done <= 200; done++) report(done, 200)
    }
    expect(terminal.written).toHaveLength(101)
    expect(terminal.written.at(50)).toBe(`\rdatabase   ${'█'.repeat(12)}${'░'.repeat(12)}  50 %`)
    expect(terminal.written.at(-1)).toBe(`\rdatabase   ${'█'.repeat(24)} 100 %\n`)
    expect(file.written).toEqual([0, 25, 50, 75, 100].map((percent) => `database ${percent} %\n`))
    terminalProgress('pictures', file.stream)(1, 1)
    expect(file.written).toHaveLength(5)
  })

  it('of a copied database and of pictures ends at 100 %', async () => {
    const folder = temporaryFolder('progress')
    const from = join(folder, 'cloud.db')
    await (await openDatabase({ file: from }, () => undefined)).close()
    const reports: number[] = []
    await copyDatabase(from, join(folder, 'copy.db'), (done, total) => reports.push(done / total))
    expect([reports[0], reports.at(-1)]).toEqual([0, 1])
    mkdirSync(join(folder, 'images/a'), { recursive: true })
    for (const name of ['1.webp', '2.webp', 'a/3.webp', 'unfinished.new'])
      writeFileSync(join(folder, 'images', name), '')
    const files: string[] = []
    const all = copyWithProgress(join(folder, 'images'), join(folder, 'to'), (done, n) => files.push(`${done}/${n}`))
    expect([all, files]).toEqual([3, ['0/3', '1/3', '2/3', '3/3']])
  })
})
