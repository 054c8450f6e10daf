import { readSyscalls, type Syscall } from './syscalls.ts'

/** A disk operation or an output of a process, in recorded order. Paths are relative to the recorded folder. */
export type DiskEvent =
  | { kind: 'create'; path: string; file: number }
  | { kind: 'folder'; path: string }
  | { kind: 'rename'; from: string; to: string }
  | { kind: 'unlink'; path: string }
  | { kind: 'write'; file: number; at: number; bytes: Buffer }
  | { kind: 'truncate'; file: number; size: number }
  | { kind: 'sync'; file: number }
  | { kind: 'sync-folder'; path: string }
  /** Output to a socket or a standard stream. After this event, the receiver may rely on the output. */
  | { kind: 'output'; part: string; to: string; text: string }

/** System calls that strace records for `readDiskLogs`. */
export const RECORDED_CALLS =
  'open,openat,creat,pwrite64,write,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,copy_file_range,sendfile,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,fsync,fdatasync,sync_file_range,msync,sendto,sendmsg'

/** A strace log and the name of the program that it belongs to. */
export interface PartLog {
  part: string
  log: string
}

/**
 * Reads the disk events below `folder` from several logs, ordered by time. Throws at a system call that it cannot
 * interpret.
 */
export function readDiskLogs(folder: string, logs: readonly PartLog[]): DiskEvent[] {
  const calls = logs.flatMap(({ part, log }) => readSyscalls(log).map((call, i) => ({ part, call, i })))
  // Sorts all calls by the time of their effect. Calls of one log with the same time keep their order.
  calls.sort((a, b) => a.call.at - b.call.at || a.i - b.i)
  const reader = newReader(folder)
  return calls.flatMap(({ part, call }) => reader.eventsOf(part, call))
}

/** Shared memory of the SQLite index. It needs no flush, because SQLite rebuilds it after a crash. */
const SHARED_MEMORY_FILE = /-shm$/

interface Reader {
  eventsOf(part: string, call: Syscall): DiskEvent[]
}

function newReader(folder: string): Reader {
  return new LogReader(folder)
}

class LogReader implements Reader {
  readonly #folder: string
  readonly #files = new Map<string, number>()
  readonly #folders = new Set<string>([''])
  #count = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  eventsOf(part: string, call: Syscall): DiskEvent[] {
    if (/^(?:open|openat|creat)$/.test(call.name)) return this.#opened(call)
    if (call.name === 'mkdir' || call.name === 'mkdirat') {
      const path = this.#named(call, 0)
      if (path === undefined) return []
      this.#folders.add(path)
      return [{ kind: 'folder', path }]
    }
    if (call.name === 'unlink' || call.name === 'unlinkat') {
      const path = this.#named(call, 0)
      return path !== undefined && this.#files.delete(path) ? [{ kind: 'unlink', path }] : []
    }
    if (call.name.startsWith('rename')) return this.#renamed(call)
    if (call.name.startsWith('link')) return this.#linked(call)
    const path = this.#within(call.on)
    if (path !== undefined) {
      if (this.#folders.has(path)) return call.name.endsWith('sync') ? [{ kind: 'sync-folder', path }] : []
      return this.#changed(call, path)
    }
    const isOutput = /^(?:TCP|UNIX)/.test(call.on ?? '') || /^[12]</.test(call.plain)
    if (!isOutput || !/^(?:write|writev|sendto|sendmsg)$/.test(call.name)) return []
    const text = Buffer.concat(call.texts).subarray(0, call.result).toString('latin1')
    return text === ''
      ? []
      : [{ kind: 'output', part, to: /^[12]</.test(call.plain) ? 'standard output' : (call.on ?? ''), text }]
  }

  #within(path: string | undefined): string | undefined {
    if (path === this.#folder) return ''
    return path?.startsWith(`${this.#folder}/`) && !SHARED_MEMORY_FILE.test(path)
      ? path.slice(this.#folder.length + 1)
      : undefined
  }

  #named({ texts }: Syscall, n: number) {
    return this.#within(texts[n]?.toString())
  }

  #opened(call: Syscall): DiskEvent[] {
    const path = this.#named(call, 0)
    if (path === undefined || this.#folders.has(path)) return []
    const known = this.#files.get(path)
    if (known !== undefined)
      return call.plain.includes('O_TRUNC') || call.name === 'creat' ? [{ kind: 'truncate', file: known, size: 0 }] : []
    if (!call.plain.includes('O_CREAT') && call.name !== 'creat') return []
    this.#files.set(path, ++this.#count)
    return [{ kind: 'create', path, file: this.#count }]
  }

  #renamed(call: Syscall): DiskEvent[] {
    const [from, to] = [this.#named(call, 0), this.#named(call, 1)]
    if (from === undefined && to === undefined) return []
    const file = from === undefined ? undefined : this.#files.get(from)
    if (from === undefined || to === undefined || file === undefined)
      throw new Error('a file was renamed across the recorded folder')
    this.#files.delete(from)
    this.#files.set(to, file)
    return [{ kind: 'rename', from, to }]
  }

  /** A further name of a file becomes visible like the name of a new file. */
  #linked(call: Syscall): DiskEvent[] {
    const [from, to] = [this.#named(call, 0), this.#named(call, 1)]
    if (from === undefined && to === undefined) return []
    const file = from === undefined ? undefined : this.#files.get(from)
    if (to === undefined || file === undefined) throw new Error('a file was linked across the recorded folder')
    this.#files.set(to, file)
    return [{ kind: 'create', path: to, file }]
  }

  #changed(call: Syscall, path: string): DiskEvent[] {
    const file = this.#files.get(path)
    // The file was unlinked before the write, so no later process can open it.
    if (file === undefined) return []
    const numbers = [...call.plain.matchAll(/, (-?\d+)/g)].map((m) => Number(m[1]))
    if (call.name === 'fsync' || call.name === 'fdatasync') return [{ kind: 'sync', file }]
    if (call.name === 'ftruncate') return [{ kind: 'truncate', file, size: numbers.at(-1) ?? 0 }]
    if (call.name === 'pwrite64')
      return [
        {
          kind: 'write',
          file,
          at: numbers.at(-1) ?? 0,
          bytes: (call.texts[0] ?? Buffer.alloc(0)).subarray(0, call.result),
        },
      ]
    // A write without a position continues at the end of the previous one. Only secret-files.ts writes in this way, and
    // only new files.
    if (call.name === 'write')
      return [{ kind: 'write', file, at: -1, bytes: (call.texts[0] ?? Buffer.alloc(0)).subarray(0, call.result) }]
    throw new Error(`${call.name} on ${path} is not supported`)
  }
}
