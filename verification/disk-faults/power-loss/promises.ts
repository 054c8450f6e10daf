import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { DiskEvent } from './disk-log.ts'

/** Guarantees of a cloud or agent up to now, and a check of a disk after a power cut. */
export interface Promises {
  /** The folder of this part below the recorded one. */
  readonly folder: 'cloud' | 'edge'
  /** Records an output that the disk must support from now on. */
  addOutput(said: Extract<DiskEvent, { kind: 'said' }>): void
  /** Number of guarantees of each kind. */
  readonly counts: Readonly<Record<string, number>>
  /** What is broken on a disk that was put down in `folder`; opens it with the real code, as a start would. */
  check(folder: string): Promise<string[]>
}

/** A counter of promises by kind. */
export function newTally(): { given: Record<string, number>; count(kind: string): void } {
  const given: Record<string, number> = {}
  return { given, count: (kind) => void (given[kind] = (given[kind] ?? 0) + 1) }
}

const JWS = /eyJ[\w-]+\.[\w-]+\.[\w-]{80,}/g

/** Decodes the signed documents within a text without verification, because the recorded process sent them. */
export function documentsIn(text: string): { typ: string; kid: string; claims: Record<string, unknown> }[] {
  return [...text.matchAll(JWS)].flatMap(([jws]) => {
    try {
      const { typ = '', kid = '' } = decodeProtectedHeader(jws)
      return [{ typ, kid, claims: decodeJwt(jws) }]
    } catch {
      // Cut off where one write ended.
      return []
    }
  })
}

const ANSWER = /HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\n(\{[^]*)$/

/** The body of an HTTP answer of 200, as bytes of Latin 1. */
export function answerIn(text: string): string | undefined {
  return ANSWER.exec(text)?.[1]
}
