// @module-tag extended
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FigureUnavailable } from './figure.ts'
import { runInProcess } from './figure-process.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'

const LONG_MS = 60_000
const folder = mkdtempSync(join(tmpdir(), 'untag-figure-'))

beforeAll(ensureBuilt)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(program: string, limitMs = LONG_MS, name = 'verify-token') {
  return runInProcess(program, { name, mode: 'smoke', folder, vendure: false }, limitMs)
}

function programOf(source: string): string {
  const file = join(folder, `${Buffer.from(source).toString('hex').slice(0, 40)}.mjs`)
  writeFileSync(file, source)
  return file
}

describe('the process of a figure', () => {
  const real = join(ROOT, 'dist', 'test', 'bench', 'figure-program.js')

  it('returns the result', async () => {
    expect((await run(real)).rows).toHaveLength(3)
  })

  it('passes on the message and the stack of an error', async () => {
    const error = await run(real, LONG_MS, 'no-such-figure').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ message: 'there is no figure no-such-figure; see --help' })
    expect((error as Error).stack).toContain('figures.js')
  })

  it('reports a program that a figure needs and this machine lacks', async () => {
    const lacking = programOf(`process.send({ unavailable: 'install the package postgresql' }, () => process.exit(0))`)
    const error = await run(lacking).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(FigureUnavailable)
    expect(error).toMatchObject({ message: 'install the package postgresql' })
  })

  it('reports a crash', async () => {
    const crashing = programOf(`process.kill(process.pid, 'SIGKILL')`)
    await expect(run(crashing)).rejects.toThrow('the process of verify-token ended without a result (SIGKILL)')
  })

  it('reports a process that exits without a result', async () => {
    await expect(run(programOf('process.exit(7)'))).rejects.toThrow('ended without a result (7)')
  })

  it('ends a figure that exceeds the time limit', async () => {
    await expect(run(programOf('setInterval(() => {}, 1_000)'), 300)).rejects.toThrow('did not end within 0.3 s')
  })
})
