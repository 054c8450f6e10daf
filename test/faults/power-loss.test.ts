// @module-tag extended
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { crashDisk } from '../verification/disk-faults/power-loss/crash-disk.ts'
import type { PowerLossResult } from '../verification/disk-faults/power-loss/power-loss.ts'
import { chanceOf } from '../verification/simulation/virtual/chance.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { NO_STRACE } from '../support/strace.ts'

/** A sample. `npm run prove` checks 5,000 states, and 500,000 in size `night`. */
const [STATES, PURCHASES] = IS_FULL_SIZE ? [300, 30] : [80, 6]

describe('a disk after a power cut', () => {
  const bytes = (text: string) => Buffer.from(text)
  const found = (disk: ReturnType<typeof crashDisk>, loss: 'none' | 'all') =>
    [...disk.after(loss, chanceOf(1))].map(([path, content]) => `${path}=${content?.toString() ?? '/'}`).toSorted()

  it('contains flushed writes, and all or none of the others', () => {
    const disk = crashDisk()
    disk.apply({ kind: 'create', path: 'a', file: 1 })
    disk.apply({ kind: 'write', file: 1, at: 0, bytes: bytes('one') })
    expect(found(disk, 'none')).toEqual([])
    disk.apply({ kind: 'sync', file: 1 })
    disk.apply({ kind: 'sync-folder', path: '' })
    disk.apply({ kind: 'write', file: 1, at: 3, bytes: bytes('two') })
    expect(found(disk, 'none')).toEqual(['a=one'])
    expect(found(disk, 'all')).toEqual(['a=onetwo'])
    expect(found(disk, 'none')).toEqual(['a=one'])
    disk.apply({ kind: 'truncate', file: 1, size: 1 })
    disk.apply({ kind: 'rename', from: 'a', to: 'b' })
    expect(found(disk, 'none')).toEqual(['a=one'])
    expect(found(disk, 'all')).toEqual(['b=o'])
  })

  it('loses a folder whose name was not flushed', () => {
    const disk = crashDisk()
    disk.apply({ kind: 'folder', path: 'f' })
    disk.apply({ kind: 'create', path: 'f/a', file: 1 })
    disk.apply({ kind: 'sync', file: 1 })
    disk.apply({ kind: 'sync-folder', path: 'f' })
    expect(found(disk, 'none')).toEqual([])
    disk.apply({ kind: 'sync-folder', path: '' })
    expect(found(disk, 'none')).toEqual(['f/a=', 'f=/'])
  })

  it('tears a write only between sectors', () => {
    const disk = crashDisk()
    disk.apply({ kind: 'create', path: 'a', file: 1 })
    disk.apply({ kind: 'sync-folder', path: '' })
    disk.apply({ kind: 'write', file: 1, at: 0, bytes: Buffer.alloc(4_096, 'x') })
    const states = Array.from(
      { length: 50 },
      (_, seed) => disk.after('torn', chanceOf(seed)).get('a') ?? Buffer.alloc(0),
    )
    const isWhole = (state: Buffer) =>
      Array.from(
        { length: Math.ceil(state.length / 512) },
        (_, i) => new Set(state.subarray(i * 512, i * 512 + 512)).size,
      ).every((kinds) => kinds === 1)
    expect(states.every(isWhole)).toBe(true)
    expect(new Set(states.map((state) => state.toString('latin1'))).size).toBeGreaterThan(20)
  })
})

describe.skipIf(NO_STRACE)(`power cuts at every moment of a day's work${NO_STRACE ? ` (${NO_STRACE})` : ''}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'untag-power-'))
  let result: PowerLossResult

  beforeAll(async () => {
    ensureBuilt()
    const env = { ...process.env, UNTAG_TEST_COMMAND: await bundledCommand() }
    const file = join(folder, 'result.json')
    try {
      // Runs in a separate process, so that its CPU time can be measured.
      execFileSync(
        process.execPath,
        [
          'dist/test/verification/disk-faults.js',
          'power-loss',
          `--states=${STATES}`,
          `--purchases=${PURCHASES}`,
          `--json=${file}`,
        ],
        { cwd: ROOT, env, stdio: 'pipe' },
      )
    } finally {
      if (readdirSync(folder).length > 0) result = JSON.parse(readFileSync(file, 'utf8')) as PowerLossResult
    }
  }, 600_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('break no promise', () => {
    expect(result.violations).toEqual([])
    expect(result.states).toBe(STATES)
  })

  it('check every kind of guarantee with every kind of loss', () => {
    const kinds = [
      'edge: enrolled',
      'edge: a release',
      'edge: an answer',
      'edge: what the agent reported to the cloud',
      'edge: denials confirmed',
      'edge: a new key',
    ]
    const ofCloud = [
      'cloud: an API key',
      'cloud: an answer',
      'cloud: a token',
      'cloud: events acknowledged',
      'cloud: heads',
      'cloud: a key set',
    ]
    expect([...kinds, ...ofCloud].filter((kind) => !((result.promises[kind] ?? 0) > 0))).toEqual([])
    expect(Math.min(...Object.values(result.byLoss))).toBeGreaterThan(STATES / 10)
  })
})
