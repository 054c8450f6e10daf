import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runtimeFiles } from '../../../bin/commands/edge.ts'
import { openLedger, type Ledger } from '../../../edge-agent/ledger/ledger.ts'
import { openWatermark, type Position, type SmallFiles } from '../../../edge-agent/ledger/file/watermark.ts'
import { temporaryFolder } from '../../support/databases.ts'

/** The runtime folder of a machine, in memory; `fault` makes it fail. */
function runtimeFolder() {
  const texts = new Map<string, string>()
  const folder = { fault: undefined as string | undefined, texts, writes: 0, warnings: [] as string[] }
  const failing = () => {
    if (folder.fault !== undefined) throw Object.assign(new Error(folder.fault), { code: folder.fault })
  }
  const files: SmallFiles = {
    read(name) {
      failing()
      return texts.get(name)
    },
    write(name, text) {
      failing()
      folder.writes++
      texts.set(name, text)
    },
  }
  return { ...folder, files, log: { warn: (_: object, message: string) => void folder.warnings.push(message) }, folder }
}

describe('the watermark of a ledger', () => {
  let machine: ReturnType<typeof runtimeFolder>
  const none = () => undefined
  const at = (generation: number, seq: number, hash = `hash-${generation}-${seq}`): Position => ({
    generation,
    seq,
    hash,
  })
  const open = (position: Position, hashAt: (seq: number) => string | undefined = none, ledgerId = 'led_1') =>
    openWatermark({ folders: [machine.files], log: machine.log, ledgerId }, position, hashAt)
  beforeEach(() => {
    machine = runtimeFolder()
  })

  it('is ahead of a ledger with fewer rows, of the same or an earlier generation', () => {
    open(at(1, 3)).note(at(1, 7))
    expect(open(at(1, 7)).isAhead).toBe(false)
    expect(open(at(1, 8)).isAhead).toBe(false)
    expect(open(at(2, 0)).isAhead).toBe(false)
    open(at(2, 1))
    expect(open(at(1, 9)).isAhead).toBe(true)
  })

  it('is ahead of a restored ledger that has added as many rows since', () => {
    open(at(1, 7))
    expect(open(at(1, 9), (seq) => `hash-1-${seq}`).isAhead).toBe(false)
    open(at(1, 9))
    expect(open(at(1, 12), (seq) => `other-${seq}`).isAhead).toBe(true)
  })

  it('stays unchanged until the cloud accepts the restored ledger', () => {
    open(at(1, 7))
    const restored = open(at(1, 3))
    for (let seq = 4; seq < 20; seq++) restored.note(at(1, seq, 'other'))
    expect(open(at(1, 3)).isAhead).toBe(true)
    restored.accept(at(2, 0))
    expect(restored.isAhead).toBe(false)
    expect(open(at(2, 0)).isAhead).toBe(false)
    expect(open(at(1, 3)).isAhead).toBe(true)
  })

  it('is separate for each agent of a machine', () => {
    open(at(1, 7), none, 'led_1')
    expect(open(at(1, 1), none, 'led_2').isAhead).toBe(false)
    expect(open(at(1, 1), none, 'led_1').isAhead).toBe(true)
  })

  it.each(['', '1 99', 'x'.repeat(160), '\0'.repeat(160)])('ignores a file damaged by a power cut: %j', (text) => {
    open(at(1, 7))
    machine.texts.set('led_1.watermark', text)
    expect(open(at(1, 1)).isAhead).toBe(false)
  })

  it('ignores a file with changed characters', () => {
    open(at(1, 7))
    const text = machine.texts.get('led_1.watermark') ?? ''
    machine.texts.set('led_1.watermark', text.replace('1 7', '1 9'))
    expect(open(at(1, 7)).isAhead).toBe(false)
  })

  it('logs once that its folder is full or read-only, and is written again later', () => {
    machine.folder.fault = 'ENOSPC'
    const watermark = open(at(1, 1))
    for (let seq = 2; seq < 9; seq++) watermark.note(at(1, seq))
    expect(machine.folder.warnings).toEqual([expect.stringContaining('the watermark of the ledger cannot be written')])
    machine.folder.fault = undefined
    watermark.note(at(1, 9))
    expect(open(at(1, 8)).isAhead).toBe(true)
    machine.folder.fault = 'EACCES'
    watermark.note(at(1, 10))
    expect(machine.folder.warnings).toHaveLength(2)
  })

  it('is never ahead of its own ledger, wherever the process dies', () => {
    const step = fc.constantFrom('commit', 'die before the watermark', 'die', 'new generation', 'reboot')
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        machine = runtimeFolder()
        let ledger = at(1, 0)
        const hashes = new Map([[0, ledger.hash]])
        const hashAt = (seq: number) => hashes.get(seq)
        let watermark = open(ledger, hashAt)
        for (const [n, each] of steps.entries()) {
          // The commit of the ledger is durable before the agent writes the watermark.
          if (each === 'commit' || each === 'die before the watermark') {
            ledger = at(ledger.generation, ledger.seq + 1, `${n}`)
            hashes.set(ledger.seq, ledger.hash)
          }
          if (each === 'new generation') {
            hashes.clear()
            ledger = at(ledger.generation + 1, 0, `${n}`)
            hashes.set(0, ledger.hash)
          }
          if (each === 'commit' || each === 'new generation') watermark.note(ledger)
          if (each === 'reboot') machine.texts.clear()
          if (each.startsWith('die') || each === 'reboot') {
            watermark = open(ledger, hashAt)
            expect(watermark.isAhead).toBe(false)
          }
        }
      }),
    )
  })
})

describe('a ledger restored from a copy of its folder', () => {
  let folder: string
  let ledger: Ledger
  let machine: ReturnType<typeof runtimeFolder>
  const file = () => join(folder, 'ledger.db')
  const open = (folders = [machine.files]) =>
    openLedger({
      file: file(),
      ledgerId: 'led_1',
      generation: 1,
      onFailure: (failure) => {
        throw failure
      },
      watermark: { folders, log: machine.log },
    })
  let rows = 0
  const record = () => ledger.record({ atMs: 1_800_000_000_000 + rows++ })
  beforeEach(() => {
    folder = temporaryFolder('watermark')
    mkdirSync(folder, { recursive: true })
    machine = runtimeFolder()
    ledger = open()
  })
  afterEach(() => {
    ledger.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const restart = (between: () => void = () => undefined) => {
    ledger.close()
    between()
    ledger = open()
  }
  const backUp = () => restart(() => copyFileSync(file(), `${file()}.backup`))
  const putBack = () => restart(() => copyFileSync(`${file()}.backup`, file()))

  it('stays behind its watermark after further rows and restarts', async () => {
    await record()
    backUp()
    expect(ledger.isBehindWatermark).toBe(false)
    await record()
    restart()
    expect(ledger.isBehindWatermark).toBe(false)
    putBack()
    expect(ledger.isBehindWatermark).toBe(true)
    for (let n = 0; n < 3; n++) await record()
    restart()
    expect(ledger.isBehindWatermark).toBe(true)
    ledger.startGeneration(2, () => undefined)
    ledger.acceptPosition()
    expect(ledger.isBehindWatermark).toBe(false)
    await record()
    restart()
    expect(ledger.isBehindWatermark).toBe(false)
  })

  it('notices a damaged write-ahead log', async () => {
    const own = [runtimeFiles(folder)]
    ledger.close()
    ledger = open(own)
    for (let n = 0; n < 5; n++) await record()
    // A killed process leaves both files. SQLite drops all frames from the damaged one on, without an error.
    const killed = [file(), `${file()}-wal`].map((name) => [name, readFileSync(name)] as const)
    const afterDamage = (at?: number) => {
      ledger.close()
      rmSync(`${file()}-shm`, { force: true })
      for (const [name, bytes] of killed) {
        const copy = Buffer.from(bytes)
        if (at !== undefined && name.endsWith('-wal')) copy[at] = (copy[at] ?? 0) ^ 1
        writeFileSync(name, copy)
      }
      ledger = open(own)
      return { rows: ledger.journal.head.seq, isBehind: ledger.isBehindWatermark }
    }
    expect(afterDamage()).toEqual({ rows: 5, isBehind: false })
    const [, wal = ['', Buffer.alloc(0)] as const] = killed
    for (const at of [100, Math.floor(wal[1].length / 2), wal[1].length - 100]) {
      const { rows, isBehind } = afterDamage(at)
      expect(rows).toBeLessThan(5)
      expect(isBehind).toBe(true)
    }
  })

  it('writes the watermark once for each commit, before the commit resolves', async () => {
    const before = machine.folder.writes
    await record()
    expect(machine.folder.writes).toBe(before + 1)
    await Promise.all([record(), record(), record()])
    expect(machine.folder.writes).toBe(before + 2)
  })

  it('accepts claims although the runtime folder fails', async () => {
    machine.folder.fault = 'EROFS'
    await record()
    expect(ledger.journal.head.seq).toBe(1)
  })
})
