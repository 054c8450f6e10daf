import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Chance } from '../../simulation/virtual/chance.ts'
import type { DiskEvent } from './disk-log.ts'

/**
 * Disk model with the minimal guarantees of POSIX. After a crash, unflushed writes may be complete, partial or missing,
 * in any order. A name is certain only after a flush of its folder. Unflushed name changes keep their order: if a crash
 * loses a name change, it also loses all later name changes. Journaling file systems do the same.
 */
export interface CrashDisk {
  /** Applies the next recorded event. */
  apply(event: DiskEvent): void
  /** True if there are unflushed changes, so that a power cut can leave one of several disks. */
  readonly isPending: boolean
  /** File content by path after a power cut; undefined for a folder. */
  after(loss: Loss, chance: Chance): ReadonlyMap<string, Buffer | undefined>
}

/** Which unflushed writes survive: none, all, a random choice, or a random choice with one torn write. */
export const LOSSES = ['none', 'all', 'some', 'torn'] as const
export type Loss = (typeof LOSSES)[number]

/** Unit that a disk writes completely or not at all, bytes. */
const SECTOR = 512

type Change = { at: number; bytes: Buffer } | { size: number }
type NameChange = Extract<DiskEvent, { kind: 'create' | 'folder' | 'rename' | 'unlink' }>

interface File {
  /** Content at the time of the last flush; it survives a power cut. */
  flushed: Buffer
  size: number
  pending: Change[]
  /** File size that the process sees. An appended write starts at this offset. */
  end: number
}

/** An empty disk. */
export function crashDisk(): CrashDisk {
  const files = new Map<number, File>()
  const names = new Map<string, number | undefined>()
  let pendingNames: NameChange[] = []

  const fileOf = (id: number): File => {
    const known = files.get(id)
    if (known) return known
    const made: File = { flushed: Buffer.alloc(0), size: 0, pending: [], end: 0 }
    files.set(id, made)
    return made
  }

  function change({ kind, ...event }: DiskEvent, file: File): void {
    if (kind === 'write') {
      const { at, bytes } = event as Extract<DiskEvent, { kind: 'write' }>
      const from = at < 0 ? file.end : at
      file.pending.push({ at: from, bytes })
      file.end = Math.max(file.end, from + bytes.length)
    }
    if (kind === 'truncate') {
      const { size } = event as Extract<DiskEvent, { kind: 'truncate' }>
      file.pending.push({ size })
      file.end = size
    }
    if (kind === 'sync') {
      for (const each of file.pending) applyChange(file, each)
      file.pending = []
    }
  }

  return {
    apply(event) {
      if (event.kind === 'output') return
      if (event.kind === 'create' || event.kind === 'folder' || event.kind === 'rename' || event.kind === 'unlink')
        return void pendingNames.push(event)
      if (event.kind === 'sync-folder') {
        for (const each of pendingNames) if (folderOf(each) === event.path) applyName(names, each)
        pendingNames = pendingNames.filter((each) => folderOf(each) !== event.path)
        return
      }
      change(event, fileOf(event.file))
    },
    get isPending() {
      return pendingNames.length > 0 || [...files.values()].some((file) => file.pending.length > 0)
    },
    after(loss, chance) {
      const found = new Map(names)
      const kept = loss === 'none' ? 0 : loss === 'all' ? pendingNames.length : chance.between(0, pendingNames.length)
      for (const each of pendingNames.slice(0, kept)) applyName(found, each)
      const state = new Map<string, Buffer | undefined>()
      for (const [path, id] of found) {
        if (!isReachable(path, found)) continue
        state.set(path, id === undefined ? undefined : contentAfter(fileOf(id), loss, chance))
      }
      return state
    },
  }
}

/** A file is reachable only if its folder exists. */
function isReachable(path: string, found: ReadonlyMap<string, unknown>): boolean {
  const folder = dirname(path)
  return folder === '.' || (found.has(folder) && isReachable(folder, found))
}

function folderOf(change: NameChange): string {
  const path = change.kind === 'rename' ? change.to : change.path
  return dirname(path) === '.' ? '' : dirname(path)
}

function applyName(names: Map<string, number | undefined>, change: NameChange): void {
  if (change.kind === 'create') names.set(change.path, change.file)
  if (change.kind === 'folder') names.set(change.path, undefined)
  if (change.kind === 'unlink') names.delete(change.path)
  if (change.kind === 'rename') {
    names.set(change.to, names.get(change.from))
    names.delete(change.from)
  }
}

function contentAfter(file: File, loss: Loss, chance: Chance): Buffer {
  const { flushed, size, pending } = file
  if (pending.length === 0 || loss === 'none') return flushed.subarray(0, size)
  const copy: Pick<File, 'flushed' | 'size'> = { flushed: Buffer.from(flushed.subarray(0, size)), size }
  const torn = loss === 'torn' ? chance.between(0, pending.length - 1) : -1
  for (const [i, each] of pending.entries()) {
    if (i === torn && 'bytes' in each) for (const part of sectorsOf(each)) applyIf(chance.happens(0.5), copy, part)
    else applyIf(loss === 'all' || chance.happens(0.5), copy, each)
  }
  return copy.flushed.subarray(0, copy.size)
}

function applyIf(is: boolean, file: Pick<File, 'flushed' | 'size'>, change: Change): void {
  if (is) applyChange(file, change)
}

function* sectorsOf({ at, bytes }: { at: number; bytes: Buffer }): Generator<Change> {
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + SECTOR - ((at + from) % SECTOR))
    yield { at: at + from, bytes: bytes.subarray(from, to) }
    from = to
  }
}

function applyChange(file: Pick<File, 'flushed' | 'size'>, change: Change): void {
  if ('size' in change) {
    grow(file, change.size)
    file.flushed.fill(0, change.size)
    file.size = change.size
    return
  }
  grow(file, change.at + change.bytes.length)
  change.bytes.copy(file.flushed, change.at)
  file.size = Math.max(file.size, change.at + change.bytes.length)
}

function grow(file: Pick<File, 'flushed' | 'size'>, size: number): void {
  if (size <= file.flushed.length) return
  const grown = Buffer.alloc(Math.max(size, file.flushed.length * 2))
  file.flushed.copy(grown)
  file.flushed = grown
}

/** Writes this state into `folder` after emptying it. */
export function writeState(state: ReadonlyMap<string, Buffer | undefined>, folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  // Sorted by path, so that folders come before their files.
  for (const [path, content] of [...state].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const place = join(folder, path)
    if (content === undefined) {
      mkdirSync(place, { recursive: true })
      continue
    }
    const fd = openSync(place, 'w', 0o600)
    if (content.length > 0) writeSync(fd, content)
    closeSync(fd)
  }
}
