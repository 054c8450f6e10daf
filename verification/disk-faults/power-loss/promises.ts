import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { DiskEvent } from './disk-log.ts'

/** What the machine of one part has promised so far, and whether a disk found after a power cut keeps it. */
export interface Promises {
  /** The folder of this part below the recorded one. */
  readonly folder: 'cloud' | 'edge'
  /** Something was said: from here on it must be so. */
  addOutput(said: Extract<DiskEvent, { kind: 'said' }>): void
  /** How often each kind of promise was given. */
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

/** Signed documents within a text, not verified: these were said by the part itself. */
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
