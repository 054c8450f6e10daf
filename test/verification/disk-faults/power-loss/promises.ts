import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { DiskEvent } from './disk-log.ts'

/**
 * The guarantees that a cloud or agent has given in its output so far, and a check of a disk against these guarantees.
 */
export interface Promises {
  /** Subfolder of the recorded folder. */
  readonly folder: 'cloud' | 'edge'
  /** Records an output. A disk after a later power cut must agree with the output. */
  addOutput(output: Extract<DiskEvent, { kind: 'output' }>): void
  /** Number of guarantees of each kind. */
  readonly counts: Readonly<Record<string, number>>
  /** Opens the disk in `folder` with the real code and returns the broken guarantees. */
  check(folder: string): Promise<string[]>
}

/** Counts guarantees by kind. */
export function newTally(): { counts: Record<string, number>; count(kind: string): void } {
  const counts: Record<string, number> = {}
  return { counts, count: (kind) => void (counts[kind] = (counts[kind] ?? 0) + 1) }
}

const JWS = /eyJ[\w-]+\.[\w-]+\.[\w-]{80,}/g

/** Decodes the signed documents within a text without verification, because the recorded process sent them. */
export function documentsIn(text: string): { typ: string; kid: string; claims: Record<string, unknown> }[] {
  return [...text.matchAll(JWS)].flatMap(([jws]) => {
    try {
      const { typ = '', kid = '' } = decodeProtectedHeader(jws)
      return [{ typ, kid, claims: decodeJwt(jws) }]
    } catch {
      // A write call can end in the middle of a document.
      return []
    }
  })
}

const ANSWER = /HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\n(\{[^]*)$/

/** Body of an HTTP answer with status 200, as Latin 1 text. */
export function answerIn(text: string): string | undefined {
  return ANSWER.exec(text)?.[1]
}
