import type { Texts } from '../texts/texts.ts'
import { signOut, whoIsHere } from './api.ts'
import type { Place } from './place.ts'
import { after } from './platform.ts'
import { slot, writeOrHide } from './slots.ts'

/** Who stands behind what this page asks. The session is kept here, in memory, and nowhere else. */
export interface Operator {
  readonly session: string | undefined
  readonly isHere: boolean
  /** Signed in at this page, with a PIN. */
  enter(name: string, session: string, idleSeconds: number): void
  /** Signed in, or out, at the device: with a badge, or at another page. */
  heard(name: string | null): void
  /** Something was asked for: the agent counts its idle time anew. */
  used(): void
  /** After the agent was away it may know nobody any more. */
  lookAgain(): Promise<void>
}

/** A badge's session ends after as long (contracts §6). */
const IDLE_SECONDS = 15 * 60

export function openOperator({ deviceId, texts }: Place, startName: string | null): Operator {
  let name = startName
  let session: string | undefined
  let idleSeconds = IDLE_SECONDS
  let callOff: () => void = () => undefined

  function used(): void {
    callOff()
    if (name !== null) callOff = after(idleSeconds * 1_000, leave)
  }

  function be(next: string | null): void {
    name = next
    draw(texts, name)
    used()
  }

  function leave(): void {
    void signOut(session, deviceId)
    session = undefined
    be(null)
  }

  slot('sign-out').addEventListener('click', leave)
  be(startName)

  return {
    get session() {
      return session
    },
    get isHere() {
      return name !== null
    },
    used,
    enter(next, opened, seconds) {
      // Whoever stood here before does not any more.
      if (session !== undefined) void signOut(session)
      session = opened
      idleSeconds = seconds
      be(next)
    },
    heard(next) {
      if (session !== undefined) void signOut(session)
      session = undefined
      be(next)
    },
    async lookAgain() {
      const answer = await whoIsHere(deviceId, session)
      if (!answer.ok) return
      if (answer.body.name === null) session = undefined
      be(answer.body.name)
    },
  }
}

function draw(texts: Texts, name: string | null): void {
  writeOrHide('operator-name', name === null ? '' : texts.signedInAs(name))
  slot('sign-in').hidden = name !== null
  slot('sign-out').hidden = name === null
}
