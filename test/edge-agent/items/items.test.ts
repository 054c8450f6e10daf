import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { inspectItemFile, openItemFile, type ItemFile } from '../../../edge-agent/items/item-file.ts'
import { itemTable } from '../../../edge-agent/items/item-table.ts'
import { Replica } from '../../../edge-agent/items/replica.ts'
import type { ItemEntry, ItemsClaims } from '../../../policy/documents/item-documents.ts'
import { ITEM_STATUSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { temporaryFolder } from '../../support/databases.ts'

/** A model of the cloud's registry: items with the number of their last change, and removed names. */
function registry() {
  const items = new Map<number, Omit<ItemEntry, 'category'> & { status: ItemStatus; category?: string }>()
  const removed = new Map<string, number>()
  let seq = 0
  let floor = 0
  return {
    get head() {
      return { epoch: 0, ver: seq, floor }
    },
    change(n: number, status: ItemStatus, name: number) {
      const epc = epcOf(name)
      const holder = [...items].find(([other, item]) => other !== n && item.epc === epc)
      const before = items.get(n)
      const newEpc = holder ? before?.epc : epc
      if (newEpc === undefined) return
      if (before?.epc !== undefined && before.epc !== newEpc) removed.set(before.epc, ++seq)
      items.set(n, { seq: ++seq, status, epc: newEpc, tagId: `T-${n}`, price: n * 100, category: `c${n % 3}` })
    },
    /** Drops the removed names so far: later pages do not contain them. */
    dropRemovals() {
      floor = Math.max(floor, ...removed.values())
      removed.clear()
    },
    page(after: number, limit: number): ItemsClaims {
      const all = [...items.values(), ...[...removed].map(([epc, at]) => ({ seq: at, epc }))]
        .filter((e) => e.seq > after)
        .sort((a, b) => a.seq - b.seq)
      const onPage = all.slice(0, limit)
      const categories = ['c0', 'c1', 'c2']
      const entries = onPage.map((e) =>
        'category' in e ? { ...e, category: categories.indexOf(e.category ?? '') } : e,
      ) as ItemEntry[]
      return {
        aud: 's',
        iat: 0,
        exp: 1,
        epoch: 0,
        ver: all.length > limit ? (onPage.at(-1)?.seq ?? 0) : seq,
        after,
        floor,
        categories,
        brands: [],
        entries,
      }
    },
    states: () => new Map([...items.values()].map((item) => [item.epc ?? '', item.status])),
  }
}

/** EPCs with even numbers fit the slots of the table; the others do not. */
function epcOf(name: number): string {
  return name % 2 === 0
    ? `30340000000000000000${String(name).padStart(4, '0')}`
    : `3600000000000000000000000000000000000000000000000${String(name).padStart(3, '0')}`
}

const NAMES = 12

/** Fails each write while the disk is full. */
function withFullDisk(disk: ItemFile, isFull: () => boolean): ItemFile {
  const check = () => {
    if (isFull()) throw new Error('the disk is full')
  }
  return { ...disk, write: (...rows) => (check(), disk.write(...rows)), clear: (mark) => (check(), disk.clear(mark)) }
}

describe('the replica of the items', () => {
  const folders: string[] = []
  afterEach(() => folders.splice(0).forEach((folder) => rmSync(folder, { recursive: true, force: true })))
  const errors: unknown[] = []
  const log = { info: () => undefined, warn: () => undefined, error: (fields: unknown) => void errors.push(fields) }
  const diskOf = (file: string) => openItemFile(file, (error) => errors.push(error))
  const newFile = () => {
    const folder = temporaryFolder('items')
    folders.push(folder)
    return join(folder, 'items.db')
  }
  const states = (replica: Replica) =>
    new Map(
      Array.from({ length: NAMES }, (_, n) => epcOf(n)).flatMap((epc) => {
        const item = replica.find('epc', epc)
        return item ? [[epc, item.status] as const] : []
      }),
    )

  it('fetches all items again although a delayed page raises its number past the floor', () => {
    const cloud = registry()
    const replica = new Replica({ disk: diskOf(newFile()), platform: virtualPlatform(), log })
    const rename = (name: number) => cloud.change(0, 'sellable', name)
    rename(0)
    replica.applyPage(cloud.page(0, 5))
    rename(1)
    const delayedPage = cloud.page(replica.position()[1], 5)
    cloud.dropRemovals()
    rename(0)
    const laterPage = cloud.page(cloud.head.ver - 1, 5)
    expect(replica.applyPage(laterPage)).toBe('gap')
    replica.applyPage(delayedPage)
    replica.compareHead(cloud.head, 1)
    for (let i = 0; replica.isBehind && i < 5; i++) replica.applyPage(cloud.page(replica.position()[1], 3))
    expect([replica.isBehind, states(replica)]).toEqual([false, cloud.states()])
    replica.close()
  })

  it('rejects pages older than the floor of its first page', () => {
    const cloud = registry()
    const replica = new Replica({ disk: diskOf(newFile()), platform: virtualPlatform(), log })
    cloud.change(0, 'sellable', 0)
    cloud.change(7, 'sellable', 1)
    replica.applyPage(cloud.page(0, 1))
    const delayedPage = cloud.page(1, 1)
    cloud.change(7, 'sellable', 2)
    cloud.dropRemovals()
    expect(replica.applyPage(cloud.page(1, 1))).toBe('gap')
    expect(replica.applyPage(cloud.page(0, 1))).toBe('taken')
    expect(replica.applyPage(delayedPage)).toBe('gap')
    for (let i = 0; replica.isBehind && i < 5; i++) replica.applyPage(cloud.page(replica.position()[1], 3))
    expect([replica.isBehind, states(replica)]).toEqual([false, cloud.states()])
    replica.close()
  })

  it('equals the registry in the end, after lost, repeated and reordered pages and crashes', async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant('change' as const),
          n: fc.nat(7),
          status: fc.constantFrom(...ITEM_STATUSES),
          name: fc.nat(NAMES - 1),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('page' as const),
          back: fc.nat(12),
          limit: fc.integer({ min: 1, max: 6 }),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('deliver' as const), pick: fc.nat(50), keep: fc.boolean() }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('fetch' as const), limit: fc.integer({ min: 1, max: 5 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          { kind: 'kill' as const },
          { kind: 'flush' as const },
          { kind: 'dropRemovals' as const },
          { kind: 'disk' as const },
        ),
      },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
        const file = newFile()
        const cloud = registry()
        // Each start of the agent has its own clock.
        let world = virtualPlatform()
        let isFull = false
        const open = () => {
          world = virtualPlatform()
          return new Replica({ disk: withFullDisk(diskOf(file), () => isFull), platform: world, log })
        }
        let replica = open()
        let sent: ItemsClaims[] = []
        for (const s of steps) {
          if (s.kind === 'change') cloud.change(s.n, s.status, s.name)
          else if (s.kind === 'page') sent.push(cloud.page(Math.max(0, cloud.head.ver - s.back), s.limit))
          else if (s.kind === 'deliver' && sent.length > 0) {
            const page = sent[s.pick % sent.length]
            if (page) replica.applyPage(page)
            if (!s.keep) sent = sent.filter((other) => other !== page)
          } else if (s.kind === 'fetch') replica.applyPage(cloud.page(replica.position()[1], s.limit))
          else if (s.kind === 'flush') await world.advance(60)
          else if (s.kind === 'dropRemovals') cloud.dropRemovals()
          else if (s.kind === 'disk') isFull = !isFull
          else if (s.kind === 'kill') {
            // The old replica writes nothing more. The new one reads the disk.
            replica = open()
          }
        }
        replica.compareHead(cloud.head, 1)
        for (let i = 0; replica.isBehind; i++) {
          expect(i).toBeLessThan(200)
          replica.applyPage(cloud.page(replica.position()[1], 3))
        }
        expect(states(replica)).toEqual(cloud.states())
        replica.compareHead(cloud.head, 2)
        expect(replica.confirmedMs).toBe(2)
        // An old page changes nothing.
        for (const page of sent) replica.applyPage(page)
        expect(states(replica)).toEqual(cloud.states())
        // The disk has room again. The replica writes after a minute, or when it closes.
        isFull = false
        if (steps.length % 2 === 0) await world.advance(61_000)
        else replica.close()
        const again = open()
        expect([states(again), again.position(), again.confirmedMs]).toEqual([cloud.states(), [0, cloud.head.ver], 2])
        again.close()
        expect(errors).toEqual([])
      }),
      { numRuns: 80 },
    )
  })

  it('writes the first time of confirmation at once, and further ones at most every 5 minutes, because each write wears an SD card', async () => {
    const platform = virtualPlatform({ startMs: 0 })
    const disk = diskOf(newFile())
    const stored: number[] = []
    const write: ItemFile['write'] = (rows, progress, labels) => {
      stored.push(progress.confirmedMs)
      disk.write(rows, progress, labels)
    }
    const replica = new Replica({ disk: { ...disk, write }, platform, log })
    for (let ms = 15_000; ms <= 390_000; ms += 15_000) {
      await platform.advance(15_000)
      replica.compareHead({ epoch: 0, ver: 0, floor: 0 }, ms)
    }
    expect(replica.confirmedMs).toBe(390_000)
    expect(stored).toEqual([15_000, 330_000])
    replica.close()
    expect(stored.at(-1)).toBe(390_000)
  })

  it('knows all names of an item before they are on the disk', async () => {
    const platform = virtualPlatform()
    const replica = new Replica({ disk: diskOf(newFile()), platform, log })
    const entry = { seq: 1, epc: '3034257BF7194E4000001A85', tagId: 'HT-1', status: 'sellable' as const, label: 0 }
    const page = { aud: 's', iat: 0, epoch: 0, after: 0, ver: 1, floor: 0, labels: [], entries: [entry] }
    replica.applyPage(page as unknown as ItemsClaims)
    const names = () => [replica.keysOf('tagId', 'ht-1'), replica.keysOf('epc', entry.epc)]
    const before = names()
    expect(before[0]).toEqual(before[1]?.toReversed())
    expect(before[0]).toHaveLength(2)
    await platform.advance(100)
    expect(names()).toEqual(before)
    replica.close()
  })

  it('keeps price, category, brand, technology and a running checkout of an item, also after a restart', () => {
    const file = newFile()
    const open = () => new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
    const first = open()
    const page = {
      aud: 's',
      iat: 0,
      exp: 1,
      epoch: 0,
      ver: 2,
      after: 0,
      floor: 0,
      categories: ['Schuhe'],
      brands: ['Nordhof'],
      names: ['Sneaker'],
    }
    const names = { epc: 'ABCD', tagUid: '04A2B3C4' }
    first.applyPage({
      ...page,
      entries: [
        {
          seq: 1,
          status: 'sellable',
          ...names,
          price: 4_999,
          category: 0,
          brand: 0,
          name: 0,
          technology: 'am',
          paying: true,
        },
        { seq: 2, status: 'paid', tagId: 'HT-1' },
      ],
    })
    const expectAll = (replica: Replica) => {
      expect(replica.find('epc', 'ABCD')).toEqual({
        status: 'sellable',
        priceCent: 4_999,
        category: 'Schuhe',
        brand: 'Nordhof',
        technology: 'am',
        paying: true,
      })
      expect(replica.find('tagUid', '04A2B3C4')).toEqual(replica.find('epc', 'ABCD'))
      expect(replica.find('tagId', ' ht-1')).toEqual(replica.find('tagId', 'HT-1'))
      expect(replica.find('tagId', 'HT-1')).toEqual({ status: 'paid', category: '', brand: '', paying: false })
      expect(replica.find('epc', '04A2B3C4')).toBeUndefined()
    }
    expectAll(first)
    // The names are only on the disk, where the item arrives a little later.
    expect(first.productOf('epc', 'ABCD')).toBeUndefined()
    first.close()
    const again = open()
    expectAll(again)
    expect([again.productOf('epc', 'ABCD'), again.productOf('tagUid', '04A2B3C4')]).toEqual(['Sneaker', 'Sneaker'])
    const facts = { category: 'Schuhe', brand: 'Nordhof', priceCent: 4_999 }
    expect(again.onlyProductOf(facts)).toEqual({ name: 'Sneaker' })
    expect(again.onlyProductOf({ ...facts, priceCent: 4_998 })).toBeUndefined()
    expect([again.productOf('tagId', 'HT-1'), again.productOf('epc', 'FFFF')]).toEqual([undefined, undefined])
    again.close()
  })

  it('finds the product of a label among any number of items', () => {
    const made = vi.spyOn(Sqlite.prototype, 'prepare')
    const path = newFile()
    const file = diskOf(path)
    const label = { category: 'Schuhe', brand: 'Nordhof' }
    const row = (n: number, product: string, cents: number) => ({
      name: `epc ${n}`,
      info: ((cents + 1) << 5) + 1,
      label: 1,
      product,
    })
    const rows = [row(1, 'Sneaker', 100), row(2, 'Sneaker', 100), row(3, 'Boot', 200), row(4, 'Clog', 200)]
    file.write(rows, { epoch: 1, ver: 1, base: 0, confirmedMs: 0 }, [label])
    expect(file.onlyProductOf({ ...label, priceCent: 100 })).toEqual({ name: 'Sneaker' })
    expect(file.onlyProductOf({ ...label, priceCent: 200 })).toBeUndefined()
    const statements = made.mock.calls
      .map(([sql]) => sql)
      .filter((sql) => /^SELECT .* FROM (item|product|label)\b/.test(sql))
    made.mockRestore()
    expect(statements.length).toBeGreaterThan(4)
    const db = new Sqlite(path)
    const plans = statements.flatMap((sql) => {
      const values = Array.from({ length: sql.split('?').length - 1 }, () => 1)
      return db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values)
    })
    db.close()
    file.close()
    expect(plans.map(({ detail }) => detail).filter((plan) => /SCAN i|TEMP B-TREE/.test(plan))).toEqual([])
  })

  it('restarts with a new epoch, and never returns to an earlier one', () => {
    const file = newFile()
    const replica = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
    const page = { aud: 's', iat: 0, exp: 1, floor: 0, categories: [], brands: [] }
    replica.applyPage({ ...page, epoch: 0, ver: 9, after: 0, entries: [{ seq: 9, status: 'paid', epc: 'AAAA' }] })
    expect(
      replica.applyPage({ ...page, epoch: 1, ver: 4, after: 3, entries: [{ seq: 4, status: 'paid', epc: 'BBBB' }] }),
    ).toBe('gap')
    expect(replica.position()).toEqual([0, 0])
    expect(replica.find('epc', 'AAAA')?.status).toBe('paid')
    expect(
      replica.applyPage({
        ...page,
        epoch: 1,
        ver: 4,
        after: 0,
        entries: [{ seq: 4, status: 'sellable', epc: 'BBBB' }],
      }),
    ).toBe('taken')
    expect([replica.find('epc', 'AAAA'), replica.find('epc', 'BBBB')?.status, replica.position()]).toEqual([
      undefined,
      'sellable',
      [1, 4],
    ])
    expect(
      replica.applyPage({ ...page, epoch: 0, ver: 20, after: 0, entries: [{ seq: 20, status: 'paid', epc: 'BBBB' }] }),
    ).toBe('rollback')
    replica.close()
    // The epoch of a restored cloud is the time of its restore.
    expect(inspectItemFile(file)).toEqual({ isComplete: false, restoredMs: 1 })
  })

  it('stores stationary tags of each gate in the same file, and distinguishes a new gate from one without tags', () => {
    const file = newFile()
    const disk = diskOf(file)
    expect(disk.stationaryTags('gate')).toBeUndefined()
    disk.saveStationaryTags('empty', [])
    disk.saveStationaryTags('gate', [{ tag: 'A', longestGapMs: 12.6, wasOutside: true }])
    disk.saveStationaryTags('gate', [
      { tag: 'B', longestGapMs: undefined, wasOutside: false },
      { tag: 'A', longestGapMs: 13.4, wasOutside: true },
    ])
    disk.close()
    const again = diskOf(file)
    expect([again.stationaryTags('empty'), again.stationaryTags('gate'), again.stationaryTags('other')]).toEqual([
      [],
      [
        { tag: 'A', longestGapMs: 13, wasOutside: true },
        { tag: 'B', longestGapMs: undefined, wasOutside: false },
      ],
      undefined,
    ])
    again.close()
  })

  it('keeps a sound file that cannot be opened, and uses a temporary database until the next start', () => {
    const file = newFile()
    const cloud = registry()
    cloud.change(0, 'paid', 0)
    const first = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
    first.applyPage(cloud.page(0, 5))
    first.close()
    const bytes = readFileSync(file)
    // Another process holds the file.
    const other = new Sqlite(file)
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const replica = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
    expect([errors.splice(0).length, replica.size, existsSync(`${file}.damaged`)]).toEqual([1, 0, false])
    replica.close()
    other.close()
    expect(readFileSync(file).equals(bytes)).toBe(true)
    const again = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
    expect(states(again)).toEqual(cloud.states())
    again.close()
  })

  it.each(['no database', 'flipped bytes at 20 %', '40 %', '88 %', '92 %', '99 %'])(
    'sets a damaged file aside (%s), logs the fault, and begins an empty file',
    (damage) => {
      const file = newFile()
      const cloud = registry()
      for (let n = 0; n < NAMES; n++) cloud.change(n, 'paid', n)
      const first = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
      for (let i = 0; first.position()[1] < cloud.head.ver && i < 99; i++) first.applyPage(cloud.page(i * 5, 5))
      first.close()
      const share = Number(/(\d+) %/.exec(damage)?.[1] ?? 0) / 100
      const bytes = share === 0 ? Buffer.from('this is no database '.repeat(500)) : readFileSync(file)
      const at = Math.floor((bytes.length * share) / 4_096) * 4_096
      if (share > 0) for (let i = at; i < Math.min(at + 64, bytes.length); i++) bytes[i] = ~(bytes[i] ?? 0) & 255
      writeFileSync(file, bytes)
      const replica = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
      expect(errors.splice(0)).toHaveLength(1)
      expect(readFileSync(`${file}.damaged`).equals(bytes)).toBe(true)
      expect([replica.size, replica.position()[1], replica.confirmedMs]).toEqual([0, 0, 0])
      expect(inspectItemFile(file)).toEqual({ isComplete: false })
      for (let i = 0; replica.position()[1] < cloud.head.ver && i < 99; i++)
        replica.applyPage(cloud.page(replica.position()[1], 5))
      expect(states(replica)).toEqual(cloud.states())
      replica.close()
      const again = new Replica({ disk: diskOf(file), platform: virtualPlatform(), log })
      expect(states(again)).toEqual(cloud.states())
      again.close()
      expect(errors).toEqual([])
    },
  )
})

describe('the table of items', () => {
  it('behaves like a Map', () => {
    const name = fc.oneof(
      fc.nat(40).map((n) => `E30340000000000000000${String(n).padStart(4, '0')}`),
      fc.nat(9).map((n) => `T-${n}`),
    )
    const op = fc.record({
      name,
      info: fc.oneof(
        { weight: 1, arbitrary: fc.constant(0) },
        { weight: 2, arbitrary: fc.integer({ min: 1, max: 2 ** 32 - 1 }) },
      ),
      label: fc.nat(65_535),
    })
    fc.assert(
      fc.property(fc.array(op, { maxLength: 200 }), (ops) => {
        const table = itemTable()
        const map = new Map<string, { info: number; label: number }>()
        for (const { name: key, info, label } of ops) {
          if (info === 0) {
            table.delete(key)
            map.delete(key)
          } else {
            table.set(key, { info, label })
            map.set(key, { info, label })
          }
        }
        expect(table.size).toBe(map.size)
        for (const { name: key } of ops) expect(table.get(key)).toEqual(map.get(key))
      }),
    )
  })

  it('stores 200,000 items in under 48 bytes each, and loses none while it grows and shrinks', () => {
    const table = itemTable()
    const epc = (n: number) => `E3034007D00011C4${n.toString(16).toUpperCase().padStart(9, '0')}`
    for (let n = 0; n < 200_000; n++) table.set(epc(n), { info: n + 1, label: n % 7 })
    for (let n = 0; n < 200_000; n += 3) table.delete(epc(n))
    for (let n = 0; n < 200_000; n++) {
      const found = table.get(epc(n))
      if (found?.info !== (n % 3 === 0 ? undefined : n + 1)) throw new Error(`item ${n}: ${found?.info}`)
    }
    expect(table.bytes / 200_000).toBeLessThan(48)
  })
})
