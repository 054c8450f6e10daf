import { createHash } from 'node:crypto'
import type { Log } from '../../log.ts'

/**
 *   commit, durable ─▶ note(position) ─▶ runtime folder, outside the agent's own
 *   start ─▶ position of the ledger behind it? ─▶ the ledger was restored: the cloud decides until it has detected that
 *
 * The position of the ledger, stored outside the data folder until the next boot. It is written after the commit, so it is never ahead of
 * its own ledger.
 */
export interface Watermark {
  /** True if the ledger lacks rows that it had: it was restored, and the cloud has not detected that yet. */
  readonly isAhead: boolean
  /** Stores a durable position. Does nothing while `isAhead`. */
  note(position: Position): void
  /** Continues from this position, after the cloud has accepted it. */
  accept(position: Position): void
}

/** The end of a ledger's journal. */
export interface Position {
  generation: number
  seq: number
  hash: string
}

/** Small files that the next boot deletes. Both methods throw file system errors. */
export interface RuntimeFiles {
  /** The text, or undefined when there is no such file. */
  read(name: string): string | undefined
  /** Overwrites the file in place and does not flush it: texts of one file have the same length. */
  write(name: string, text: string): void
}

const LENGTH = 160
const REPORT =
  'the watermark of the ledger cannot be written: the agent detects a restored ledger only when the cloud is online'

/** Reads the watermark of this ledger. `hashAt`: the hash of a row of the ledger, undefined when the row is gone. */
export function openWatermark(
  { files, ledgerId, log }: { files: RuntimeFiles; ledgerId: string; log: Pick<Log, 'warn'> },
  at: Position,
  hashAt: (seq: number) => string | undefined,
): Watermark {
  const name = `${ledgerId}.watermark`
  let isReported = false

  /** Reports the first of several failures in a row. */
  function trying<T>(work: () => T): T | undefined {
    try {
      const value = work()
      isReported = false
      return value
    } catch (error) {
      if (!isReported) log.warn({ err: error }, REPORT)
      isReported = true
      return undefined
    }
  }

  const stored = trying(() => parse(files.read(name)))
  let last = stored
  let isAhead = stored !== undefined && (isLater(stored, at) || isOtherBranch(stored, at, hashAt))

  function put(position: Position): void {
    trying(() => {
      files.write(name, textOf(position))
      last = position
    })
  }

  if (!isAhead) put(at)
  return {
    get isAhead() {
      return isAhead
    },
    note(position) {
      if (!isAhead && (!last || isLater(position, last))) put(position)
    },
    accept(position) {
      isAhead = false
      put(position)
    },
  }
}

function isLater(a: Position, b: Position): boolean {
  return a.generation === b.generation ? a.seq > b.seq : a.generation > b.generation
}

/** The ledger has another row under the watermark's number: it was restored, and has written rows since. */
function isOtherBranch(stored: Position, at: Position, hashAt: (seq: number) => string | undefined): boolean {
  if (stored.generation !== at.generation) return false
  const hash = hashAt(stored.seq)
  return hash !== undefined && hash !== stored.hash
}

function textOf({ generation, seq, hash }: Position): string {
  const body = `${generation} ${seq} ${hash}`
  return `${body} ${checksum(body)}`.padEnd(LENGTH - 1).concat('\n')
}

/** Returns undefined if the checksum is wrong, for example after a power cut. */
function parse(text: string | undefined): Position | undefined {
  const match = /^(?<body>(?<generation>\d+) (?<seq>\d+) (?<hash>\S+)) (?<sum>\S+) *\n$/.exec(text ?? '')
  const { body = '', generation, seq, hash = '', sum } = match?.groups ?? {}
  return sum === checksum(body) ? { generation: Number(generation), seq: Number(seq), hash } : undefined
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
